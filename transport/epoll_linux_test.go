package transport_test

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/epoll"
	"github.com/cellserver/cellserver/transport/internal/transporttest"
)

func epollOf(t *testing.T, loops int) transporttest.Factory {
	return func(h transport.Handler, lim transport.Limits, clock *transporttest.Clock) transport.Transport {
		tr, err := epoll.New(h, lim, loops, transporttest.Quiet, clock.Now)
		require.NoError(t, err)
		return tr
	}
}

func TestEpollConformance(t *testing.T) { run(t, epollOf(t, 2)) }

func TestEpollConformanceOneLoop(t *testing.T) { run(t, epollOf(t, 1)) }

func TestEpollConformanceOverTLS(t *testing.T) { runTLS(t, epollOf(t, 2)) }

func TestEpollServesOnlyWhatItCan(t *testing.T) {
	tr := epollOf(t, 1)(transporttest.NewLineHandler(), transporttest.PatientLimits(), transporttest.NewClock())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.Error(t, tr.Serve(struct{ net.Listener }{l}))
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	require.NoError(t, tr.Shutdown(t.Context()))
}

// TestEpollNoticesTheEndBehindAFullBacklog: the server notices that a parked client resets its
// connection, and that a waiting one stops sending, even if it keeps no more input of them.
func TestEpollNoticesTheEndBehindAFullBacklog(t *testing.T) {
	lim := transporttest.PatientLimits()
	lim.Backlog = 16 << 10
	r := transporttest.Start(t, epollOf(t, 1), transporttest.NewLineHandler(), lim)
	for i, c := range []struct {
		command string
		end     func(c *transporttest.Client) error
	}{
		{"park", func(c *transporttest.Client) error { return errors.Join(c.TCP().SetLinger(0), c.Close()) }},
		{"wait", (*transporttest.Client).CloseWrite},
	} {
		far := r.Dial()
		s := r.Session(i)
		far.Send(c.command+" a", strings.Repeat("x", 2*lim.Backlog))
		r.Await(func() bool { return r.Handler.IsParked("a") })
		r.Eventually(func() bool { r.Pass(0); input, _ := s.Peer.Held(); return input >= int64(lim.Backlog) })
		require.NoError(t, c.end(far))
		r.Await(s.Gone.Load)
		r.Handler.Finish("a", "A")
	}
}
