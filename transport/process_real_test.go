//go:build real && unix

package transport_test

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

var ownProcess = []struct {
	kind transport.Kind
	idle int64 // bytes that an idle connection may cost
}{
	{transport.KindGoroutine, 6 << 10},
	{transport.KindAuto, 512},
}

func TestDescriptorsExhausted(t *testing.T) {
	for _, c := range ownProcess {
		t.Run(string(c.kind), func(t *testing.T) { testExhausted(t, spawn(t, c.kind, 2, 40)) })
	}
}

func testExhausted(t *testing.T, s *server) {
	old := s.dial()
	old.Send("PING")
	old.Expect("+PONG\r")
	var crowd []*transporttest.Client
	for range 60 { // the kernel takes them all, the server cannot
		crowd = append(crowd, s.dial())
	}
	require.Eventually(t, func() bool { return s.ask("").acceptErrs > 0 }, transporttest.Patience, time.Millisecond)
	for range 100 {
		old.Send("PING")
		old.Expect("+PONG\r")
	}
	last := crowd[len(crowd)-1]
	for _, c := range crowd[:50] {
		require.NoError(t, c.Close())
	}
	last.Send("PING")
	last.Expect("+PONG\r")
}

func TestIdleConnectionsAreCheap(t *testing.T) {
	for _, c := range ownProcess {
		idle := c.idle
		if c.kind == transport.KindAuto && runtime.GOOS != "linux" {
			idle = ownProcess[0].idle
		}
		t.Run(string(c.kind), func(t *testing.T) { testIdle(t, spawn(t, c.kind, 2, 0), idle) })
	}
}

func testIdle(t *testing.T, s *server, limit int64) {
	const conns = 2000
	s.dial() // the first connection allocates what all share
	before := s.ask("memory").memory
	batch := string(bytes.Repeat([]byte("PING\n"), 1000))
	for i := range conns {
		c := s.dial()
		if i%10 == 0 { // some of them have been busy once
			c.Send(batch + "PING\nPI") // and one with half a command
			for range 1001 {
				c.Expect("+PONG\r")
			}
		}
	}
	require.Eventually(t, func() bool { return s.ask("").connections == conns+1 }, transporttest.Patience, time.Millisecond)
	each := int64(0)
	require.Eventually(t, func() bool {
		each = (s.ask("memory").memory - before) / conns
		return each <= limit
	}, transporttest.Patience, 100*time.Millisecond, "%d bytes for an idle connection", &each)
	t.Logf("%d bytes for an idle connection", each)
}

// BenchmarkRequest measures the CPU time of a server process for a request that costs nothing by
// itself, for each kind of transport.
func BenchmarkRequest(b *testing.B) {
	for _, depth := range []int{1, 32} {
		for _, c := range ownProcess {
			b.Run(fmt.Sprintf("P=%d/%s", depth, c.kind), func(b *testing.B) {
				benchRequest(b, spawn(b, c.kind, 1, 0), depth)
			})
		}
	}
}

func benchRequest(b *testing.B, s *server, depth int) {
	var conns []*transporttest.Client
	for range 50 {
		c := s.dial()
		require.NoError(b, c.SetDeadline(time.Time{}))
		conns = append(conns, c)
	}
	ask(b, conns, depth, 2_000)
	before := s.ask("").cpu
	b.ResetTimer()
	ask(b, conns, depth, b.N)
	b.ReportMetric(float64(s.ask("").cpu-before)/float64(b.N), "server-ns/op")
}

// ask makes all connections send batches and wait for the replies. It sends n requests in total,
// rounded up to whole batches.
func ask(b *testing.B, conns []*transporttest.Client, depth, n int) {
	var left atomic.Int64
	left.Store(int64(n))
	var group sync.WaitGroup
	for _, c := range conns {
		group.Go(func() {
			batch := bytes.Repeat([]byte("PING\r\n"), depth)
			reply := make([]byte, depth*len("+PONG\r\n"))
			for left.Add(-int64(depth)) > -int64(depth) {
				if _, err := c.Conn.Write(batch); err != nil {
					b.Error(err)
					return
				}
				if _, err := io.ReadFull(c.Conn, reply); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}
