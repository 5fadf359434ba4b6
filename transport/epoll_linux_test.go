package transport_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport"
)

func epollOf(t *testing.T, loops int) factory {
	return func(h transport.Handler, lim transport.Limits) transport.Transport {
		tr, err := transport.NewEpoll(h, lim, loops, quiet)
		require.NoError(t, err)
		return tr
	}
}

func TestEpollConformance(t *testing.T) { run(t, epollOf(t, 2)) }

func TestEpollConformanceOneLoop(t *testing.T) { run(t, epollOf(t, 1)) }

func TestEpollServesOnlyWhatItCan(t *testing.T) {
	tr := epollOf(t, 1)(newLineHandler(), transport.DefaultLimits())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.Error(t, tr.Serve(struct{ net.Listener }{l}))
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	require.NoError(t, tr.Shutdown(t.Context()))
}

// Connections alternate between two loops; then every other one becomes busy. The
// busy ones must not stay on one loop, and lose nothing when they move.
func TestEpollBalancesLoad(t *testing.T) {
	r := start(t, epollOf(t, 2), newLineHandler(), transport.DefaultLimits())
	e := r.tr.(*transport.Epoll)
	var busy []*client
	for i := range 16 {
		c := r.dial()
		r.session(i)
		if i%2 == 0 {
			busy = append(busy, c)
		}
	}
	done := make(chan bool)
	var group sync.WaitGroup
	for _, c := range busy {
		group.Go(func() { keepAsking(t, c, done) })
	}
	last := transport.Work(e)
	r.eventually(func() bool {
		now := transport.Work(e)
		a, b := now[0]-last[0], now[1]-last[1]
		if a+b < 200_000 {
			return false // not enough to tell
		}
		last = now
		return min(a, b) > (a+b)/4
	})
	require.Positive(t, transport.Moved(e))
	close(done)
	group.Wait()
}

// keepAsking sends batches, and checks the replies, until done.
func keepAsking(t *testing.T, c *client, done <-chan bool) {
	batch := strings.Repeat("echo 0123456789\n", 8)
	want := strings.Repeat("0123456789\n", 8)
	got := make([]byte, len(want))
	for {
		select {
		case <-done:
			return
		default:
		}
		if _, err := io.WriteString(c, batch); err != nil {
			t.Error(err)
			return
		}
		if _, err := io.ReadFull(c.r, got); err != nil || string(got) != want {
			t.Errorf("got %q, %v", got, err)
			return
		}
	}
}
