//go:build real

package server_test

import (
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cellserver/cellserver/internal/inproc"
)

// BenchmarkClientsBesideHalfHandshakes measures the latency of calls of TLS clients, as the slowest
// of a hundred, without other clients and while 1,000 other connections have begun a handshake and
// do not continue it. Connections that the server closes reconnect at once. It prints the minimum
// of both, and the ratio.
func BenchmarkClientsBesideHalfHandshakes(b *testing.B) {
	const halves, clients, calls = 1000, 8, 1500
	s := startTLS(b, "auto", "--maxclients", "5000")
	working := make([]*inproc.Client, clients)
	for i := range working {
		working[i] = s.dial(s.authority.Client())
	}
	p99 := func() time.Duration {
		took := make([][]time.Duration, clients)
		var all sync.WaitGroup
		for i, c := range working {
			all.Go(func() {
				for range calls {
					begun := time.Now()
					c.Do("CL.THROTTLE", "user", "1000000", "1000000", "1")
					took[i] = append(took[i], time.Since(begun))
				}
			})
		}
		all.Wait()
		sorted := slices.Sorted(slices.Values(slices.Concat(took...)))
		return sorted[len(sorted)*99/100]
	}
	alone, beside := time.Hour, time.Hour
	for b.Loop() {
		alone = min(alone, p99())
		end := s.halfHandshakes(halves)
		beside = min(beside, p99())
		end()
	}
	b.ReportMetric(float64(alone.Microseconds()), "µs-p99-alone")
	b.ReportMetric(float64(beside.Microseconds()), "µs-p99-beside")
	b.ReportMetric(float64(beside)/float64(alone), "ratio")
	b.ReportMetric(0, "ns/op")
}

// halfHandshakes keeps n unfinished handshakes open, until end is called.
func (s *tlsServer) halfHandshakes(n int) (end func()) {
	var all, begun sync.WaitGroup
	var mu sync.Mutex
	open, ended := make([]net.Conn, n), false // guarded by mu
	half := func(i int) net.Conn {
		nc, err := net.Dial("tcp", s.secure)
		if err != nil {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if ended {
			_ = nc.Close() // the error does not matter
			return nil
		}
		_, _ = nc.Write([]byte{22, 3, 1}) // the beginning of a record
		open[i] = nc
		return nc
	}
	begun.Add(n)
	for i := range n {
		all.Go(func() {
			nc := half(i)
			begun.Done()
			for nc != nil {
				_, _ = io.Copy(io.Discard, nc) // until the server closes it
				_ = nc.Close()
				nc = half(i)
			}
		})
	}
	begun.Wait()
	return func() {
		mu.Lock()
		ended = true
		for _, nc := range open {
			if nc != nil {
				_ = nc.Close() // ends its goroutine
			}
		}
		mu.Unlock()
		all.Wait()
	}
}
