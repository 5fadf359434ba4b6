//go:build real

package remote_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/internal/storetest"
	"github.com/cellserver/cellserver/remote"
)

// BenchmarkLeases has eight servers decide flights of 32 calls for one key with a very high limit,
// on a real node, with leases and exactly.
func BenchmarkLeases(b *testing.B) {
	for way, hot := range map[string]map[string]string{"lease": {"": "lease"}, "exact": nil} {
		b.Run(way, func(b *testing.B) {
			n := storetest.Best(b).Single(b, storetest.Options{})
			const servers, flight = 8, 32
			var all []*remote.Store
			for range servers {
				s, err := remote.Open(remote.Options{URL: n.URL(), Prefix: "cs:", Timeout: 10 * time.Second, HotKeys: hot})
				require.NoError(b, err)
				defer s.Close()
				all = append(all, s)
				storetest.Await(b, "the store answers", func() error { return submit(s, hourly("ready", 1000)) })
			}
			messages := func() (sum float64) {
				for _, s := range all {
					for _, f := range s.Info().Figures {
						if f.Name == "gets" || f.Name == "swaps" {
							sum += f.Value
						}
					}
				}
				return sum
			}
			far, err := gcra.NewQuota(1e9-1, 1e9, 1)
			require.NoError(b, err)
			before := messages()
			var left, failed atomic.Int64
			left.Store(int64(b.N))
			ended := make(chan struct{})
			b.ResetTimer()
			for _, s := range all {
				for range 4 {
					go func() {
						asks := make([]*decide.Ask, flight)
						for i := range asks {
							asks[i] = &decide.Ask{Key: []byte("hot"), Family: decide.Cell, Quota: far, Quantity: 1}
						}
						for left.Add(-flight) > -flight {
							done := make(chan struct{})
							s.Submit(asks, false, func() { close(done) })
							<-done
							for _, a := range asks {
								if a.Err != nil {
									failed.Add(1)
								}
							}
						}
						ended <- struct{}{}
					}()
				}
			}
			for range servers * 4 {
				<-ended
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
			b.ReportMetric((messages()-before)/b.Elapsed().Seconds(), "messages/s")
			require.Zero(b, failed.Load())
		})
	}
}
