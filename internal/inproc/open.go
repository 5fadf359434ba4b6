package inproc

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/server"
)

// OpenWith does the same as [Open]. setup may change the options of the server. If it sets a clock,
// the server has that clock, and otherwise one that only the test moves.
func OpenWith(tb testing.TB, setup func(*server.Options), options ...string) *Fed {
	tb.Helper()
	o := server.Options{}
	setup(&o)
	c := clocktest.New(Epoch)
	if o.Clock != nil {
		c = nil
	}
	s, err := newServer(c, []net.Listener{}, o, append([]string{"--transport", "goroutine"}, options...))
	require.NoError(tb, err)
	tb.Cleanup(func() {
		s.Engine().Close()
		s.Keyspace().Close()
	})
	return (&Fed{Session: &Session{server: s}, tb: tb}).Another()
}
