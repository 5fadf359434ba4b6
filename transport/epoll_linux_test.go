package transport_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport"
)

func epollOf(t *testing.T, loops int) factory {
	return func(h transport.Handler, lim transport.Limits, clock *transport.Clock) transport.Transport {
		tr, err := transport.NewEpollAt(h, lim, loops, quiet, clock)
		require.NoError(t, err)
		return tr
	}
}

func TestEpollConformance(t *testing.T) { run(t, epollOf(t, 2)) }

func TestEpollConformanceOneLoop(t *testing.T) { run(t, epollOf(t, 1)) }

func TestEpollConformanceOverTLS(t *testing.T) { runTLS(t, epollOf(t, 2)) }

func TestEpollServesOnlyWhatItCan(t *testing.T) {
	tr := epollOf(t, 1)(newLineHandler(), patientLimits(), transport.NewClock())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.Error(t, tr.Serve(struct{ net.Listener }{l}))
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	require.NoError(t, tr.Shutdown(t.Context()))
}

// All connections of one of two loops become busy. They must not stay on that loop, and
// neither replies nor wakes may get lost when they move.
func TestEpollBalancesLoad(t *testing.T) {
	balances(t, epollOf(t, 2))
}

// With TLS what was received and not yet decrypted moves with them.
func TestEpollBalancesLoadOverTLS(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		balances(t, secured(t, epollOf(t, 2), version))
	}
}

func balances(t *testing.T, f factory) {
	r := start(t, f, newLineHandler(), patientLimits())
	e, plain := r.tr.(*transport.Epoll)
	if !plain {
		e = r.tr.(*overTLS).Transport.(*transport.Epoll)
	}
	var done atomic.Bool
	var group sync.WaitGroup
	on := map[int]map[*client]*lineSession{0: {}, 1: {}} // by loop
	for i := range 16 {
		c := r.dial()
		c.send("echo 0") // with TLS it has been through its handshake then
		c.expect("0")
		s := r.session(i)
		on[transport.LoopOf(e, s.peer)][c] = s
	}
	busy := on[0]
	if len(on[1]) > len(busy) {
		busy = on[1]
	}
	for c, s := range busy {
		group.Go(func() { converse(t, c, s, &done) })
	}
	last := transport.Work(e)
	r.eventually(func() bool {
		now := transport.Work(e)
		a, b := now[0]-last[0], now[1]-last[1]
		if a+b < 20_000 {
			return false // not enough to tell
		}
		last = now
		return min(a, b) > (a+b)/4
	})
	require.Positive(t, transport.Moved(e))
	done.Store(true)
	group.Wait()
}

// converse sends a batch, has a line pushed, and checks what comes, until done.
func converse(t *testing.T, c *client, s *lineSession, done *atomic.Bool) {
	for n := 0; !done.Load(); n++ {
		if _, err := io.WriteString(c, "echo 1\necho 2\necho 3\n"); err != nil {
			t.Error(err)
			return
		}
		pushed := fmt.Sprint("push ", n)
		s.push(pushed)
		var replies, pushes []string
		for range 4 {
			line, err := c.r.ReadString('\n')
			if err != nil {
				t.Error(err)
				return
			}
			if line = strings.TrimSuffix(line, "\n"); line == pushed {
				pushes = append(pushes, line)
			} else {
				replies = append(replies, line)
			}
		}
		if len(pushes) != 1 || !slices.Equal(replies, []string{"1", "2", "3"}) {
			t.Errorf("got %v and %v", replies, pushes)
			return
		}
	}
}

// TestEpollNoticesTheEndBehindAFullBacklog: a parked client that resets its connection, and a
// waiting one that stops sending, are noticed even if no more input is kept for them.
func TestEpollNoticesTheEndBehindAFullBacklog(t *testing.T) {
	lim := patientLimits()
	lim.Backlog = 16 << 10
	r := start(t, epollOf(t, 1), newLineHandler(), lim)
	for i, c := range []struct {
		command string
		end     func(c *client) error
	}{
		{"park", func(c *client) error { return errors.Join(c.tcp().SetLinger(0), c.Close()) }},
		{"wait", (*client).closeWrite},
	} {
		far := r.dial()
		s := r.session(i)
		far.send(c.command+" a", strings.Repeat("x", 2*lim.Backlog))
		r.await(func() bool { return r.h.isParked("a") })
		r.eventually(func() bool { r.pass(0); input, _ := s.peer.Held(); return input >= int64(lim.Backlog) })
		require.NoError(t, c.end(far))
		r.await(s.closed.Load)
		r.h.finish("a", "A")
	}
}
