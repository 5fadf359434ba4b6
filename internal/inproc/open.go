package inproc

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/server"
)

// OpenWith is [Open] with what setup changes of the server's options. A clock among them is used in
// place of the one that stands still.
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
