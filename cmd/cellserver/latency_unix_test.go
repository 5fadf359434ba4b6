//go:build real && unix

package main

import (
	"bufio"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkLatencyOfOthers calls CL.THROTTLE over one connection, one call after another, with
// different other load: none; a thousand clients that request large replies and read nothing; and
// clients beyond maxclients that connect and are refused, up to fifty thousand. It reports the
// latency in µs, and for the last case the number of refused clients.
func BenchmarkLatencyOfOthers(b *testing.B) {
	b.Run("nobody", func(b *testing.B) {
		measureLatency(b, dialProgram(b, launch(b, b.TempDir(), nil, latencyFlags...)))
	})
	b.Run("slow readers", func(b *testing.B) {
		p := launch(b, b.TempDir(), nil, latencyFlags...)
		for range 1000 {
			_, err := io.WriteString(dialProgram(b, p), strings.Repeat("COMMAND\r\n", 100)) // some 3 MB of replies
			require.NoError(b, err)
		}
		measureLatency(b, dialProgram(b, p))
	})
	b.Run("refused", func(b *testing.B) {
		p := launch(b, b.TempDir(), nil, append([]string{"--maxclients", "10"}, latencyFlags...)...)
		const callers, each = 8, 50_000 / 8
		var last net.Conn
		for range 10 {
			last = dialProgram(b, p)
		}
		var refused [callers]int
		var wg sync.WaitGroup
		stop := make(chan struct{})
		for i := range callers {
			wg.Go(func() { refused[i] = beRefused(p.socket, each, stop) })
		}
		measureLatency(b, last)
		close(stop)
		wg.Wait()
		total := 0
		for _, n := range refused {
			total += n
		}
		b.ReportMetric(float64(total), "refused")
	})
}

// latencyFlags keep slow readers connected, because disconnecting them is not measured.
var latencyFlags = []string{"--appendonly", "no", "--save", "", "--write-timeout", "3600"}

// beRefused connects up to n times and returns how often it was refused because of too many
// clients.
func beRefused(socket string, n int, stop chan struct{}) (refused int) {
	for range n {
		select {
		case <-stop:
			return refused
		default:
		}
		c, err := net.Dial("unix", socket)
		if err != nil {
			continue // the queue of the listener is full
		}
		if text, _ := io.ReadAll(c); strings.HasPrefix(string(text), "-ERR max number of clients") {
			refused++
		}
		_ = c.Close() // nothing was written
	}
	return refused
}

// dialProgram opens a connection and waits for a first reply on it.
func dialProgram(b *testing.B, p *process) net.Conn {
	c, err := net.Dial("unix", p.socket)
	require.NoError(b, err)
	b.Cleanup(func() { _ = c.Close() })
	_, err = ask(bufio.NewReader(c), c, "PING")
	require.NoError(b, err)
	return c
}

func measureLatency(b *testing.B, c net.Conn) {
	r := bufio.NewReader(c)
	took := make([]time.Duration, 0, b.N)
	b.ResetTimer()
	for range b.N {
		begun := time.Now()
		_, err := ask(r, c, "CL.THROTTLE key 15 30 60")
		took = append(took, time.Since(begun))
		if err != nil {
			require.NoError(b, err)
		}
	}
	b.StopTimer()
	slices.Sort(took)
	for _, q := range []struct {
		name string
		part float64
	}{{"p50-µs", 0.5}, {"p99-µs", 0.99}, {"p99.9-µs", 0.999}, {"max-µs", 1}} {
		b.ReportMetric(float64(took[int(q.part*float64(len(took)-1))].Microseconds()), q.name)
	}
}
