package epoll_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport/epoll"
	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

// TestEpollBalancesLoad: when all connections of one of two loops become busy, some must move to
// the other, and neither replies nor wakes may get lost.
func TestEpollBalancesLoad(t *testing.T) {
	balances(t, epollOf(t, 2))
}

// TestEpollBalancesLoadOverTLS: received bytes that are not decrypted yet move with a connection.
func TestEpollBalancesLoadOverTLS(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		balances(t, transporttest.Secured(t, epollOf(t, 2), version))
	}
}

func balances(t *testing.T, f transporttest.Factory) {
	r := transporttest.Start(t, f, transporttest.NewLineHandler(), transporttest.PatientLimits())
	e, plain := r.Transport.(*epoll.Transport)
	if !plain {
		e = r.Transport.(*transporttest.OverTLS).Transport.(*epoll.Transport)
	}
	var done atomic.Bool
	var group sync.WaitGroup
	on := map[int]map[*transporttest.Client]*transporttest.LineSession{0: {}, 1: {}} // by loop
	for i := range 16 {
		c := r.Dial()
		c.Send("echo 0") // with TLS, the handshake is over after that
		c.Expect("0")
		s := r.Session(i)
		on[epoll.LoopOf(e, s.Peer)][c] = s
	}
	busy := on[0]
	if len(on[1]) > len(busy) {
		busy = on[1]
	}
	for c, s := range busy {
		group.Go(func() { converse(t, c, s, &done) })
	}
	last := epoll.Work(e)
	r.Eventually(func() bool {
		now := epoll.Work(e)
		a, b := now[0]-last[0], now[1]-last[1]
		if a+b < 20_000 {
			return false // not enough to tell
		}
		last = now
		return min(a, b) > (a+b)/4
	})
	require.Positive(t, epoll.Moved(e))
	done.Store(true)
	group.Wait()
}

// converse sends batches, pushes a line, and checks the replies, until done.
func converse(t *testing.T, c *transporttest.Client, s *transporttest.LineSession, done *atomic.Bool) {
	for n := 0; !done.Load(); n++ {
		if _, err := io.WriteString(c, "echo 1\necho 2\necho 3\n"); err != nil {
			t.Error(err)
			return
		}
		pushed := fmt.Sprint("push ", n)
		s.Push(pushed)
		var replies, pushes []string
		for range 4 {
			line, err := c.Reader.ReadString('\n')
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
