//go:build real

package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/cellserver/cellserver/internal/storetest"
	"github.com/cellserver/cellserver/remote/engine"
)

// ownCPU reports the processor time of this process per operation.
func ownCPU(b *testing.B) func() {
	b.Helper()
	used := func() time.Duration {
		var u unix.Rusage
		require.NoError(b, unix.Getrusage(unix.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	b.ResetTimer()
	return func() {
		b.StopTimer()
		b.ReportMetric(float64(used()-before)/float64(b.N)/1000, "own-us/op")
	}
}

// BenchmarkEngine has many callers, each of which calls again as soon as it is answered.
func BenchmarkEngine(b *testing.B) {
	n := storetest.Best(b).Single(b, storetest.Options{})
	for _, callers := range []int{1, 32, 256, 1024} {
		b.Run(fmt.Sprint("get/", callers), func(b *testing.B) {
			e := ready(b, n.URL(), func(o *engine.Options) { o.Timeout = 10 * time.Second })
			chains(b, e, callers, func(key string, _ int, next func(error)) {
				e.Get([]byte(key), func(_ []byte, err error) { next(err) })
			})
		})
		b.Run(fmt.Sprint("swap/", callers), func(b *testing.B) {
			e := ready(b, n.URL(), func(o *engine.Options) { o.Timeout = 10 * time.Second })
			flushed := make(chan error, 1)
			e.Flush(func(err error) { flushed <- err })
			require.NoError(b, <-flushed)
			chains(b, e, callers, func(key string, i int, next func(error)) {
				var old []byte
				if i > 0 {
					old = value(i, "0123456789012345678901234567")
				}
				w := write(key, old, value(i+1, "0123456789012345678901234567"))
				e.Swap(w, func(applied bool, now []byte, err error) {
					if err == nil && !applied {
						err = fmt.Errorf("%d: %q", i, now)
					}
					next(err)
				})
			})
		})
	}
}

// chains runs b.N operations, each by a caller after its last one.
func chains(b *testing.B, e *engine.Engine, callers int, ask func(key string, i int, next func(error))) {
	b.Helper()
	b.ReportAllocs()
	var all sync.WaitGroup
	before := e.Info().Nodes[0].Pipelines
	end := ownCPU(b)
	for c := range callers {
		key, left := fmt.Sprint("key", c), b.N/callers
		if c < b.N%callers {
			left++
		}
		all.Add(1)
		i := -1
		var next func(error)
		next = func(err error) {
			if err != nil {
				b.Error(err)
			}
			if i++; i == left || err != nil {
				all.Done()
				return
			}
			ask(key, i, next)
		}
		next(nil)
	}
	all.Wait()
	end()
	b.ReportMetric(float64(b.N)/float64(e.Info().Nodes[0].Pipelines-before), "requests/pipeline")
}

// BenchmarkPipelined measures the client library alone for the same operations.
func BenchmarkPipelined(b *testing.B) {
	n := storetest.Best(b).Single(b, storetest.Options{})
	for _, size := range []int{32, 256} {
		b.Run(fmt.Sprint("get/", size), func(b *testing.B) {
			b.ReportAllocs()
			ctx := context.Background()
			end := ownCPU(b)
			for left := b.N; left > 0; left -= size {
				_, _ = n.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
					for i := range min(size, left) {
						p.Get(ctx, fmt.Sprint("key", i))
					}
					return nil
				})
			}
			end()
		})
	}
}

// BenchmarkFlights has 24 sessions that request 32 keys at a time and wait for all.
func BenchmarkFlights(b *testing.B) {
	const sessions, flight = 24, 32
	n := storetest.Best(b).Single(b, storetest.Options{})
	e := ready(b, n.URL(), func(o *engine.Options) { o.Timeout = 10 * time.Second })
	before := e.Info().Nodes[0].Pipelines
	b.ReportAllocs()
	end := ownCPU(b)
	var all sync.WaitGroup
	for s := range sessions {
		all.Go(func() {
			keys := make([][]byte, flight)
			for i := range keys {
				keys[i] = fmt.Appendf(nil, "key%d", s*flight+i)
			}
			var answered sync.WaitGroup
			done := func([]byte, error) { answered.Done() }
			for left := b.N / sessions; left > 0; left -= flight {
				n := min(left, flight)
				answered.Add(n)
				for i := range n {
					e.Get(keys[i], done)
				}
				answered.Wait()
			}
		})
	}
	all.Wait()
	end()
	b.ReportMetric(float64(b.N)/float64(e.Info().Nodes[0].Pipelines-before), "requests/pipeline")
}
