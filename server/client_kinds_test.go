package server_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/server"
)

// TestNewKindsOfClientsAreChanges: another library, or another version, is recorded once. Clients
// that reconnect after a start are not, and many kinds at once cannot fill the list.
func TestNewKindsOfClientsAreChanges(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		var kinds server.ClientKinds
		e := f.Engine()
		look := func() (texts []string) {
			before := e.Changes.Since(0)
			for range server.LookEvery {
				kinds.Look(e)
			}
			for _, c := range e.Changes.Since(before[len(before)-1].ID) {
				require.Equal(t, "client", c.Kind)
				texts = append(texts, c.Text+" / "+c.By)
			}
			return texts
		}
		named := func(name, lib, version string) *inproc.Client {
			c := f.Dial()
			for _, set := range [][]string{{"CLIENT", "SETNAME", name}, {"CLIENT", "SETINFO", "LIB-NAME", lib}, {"CLIENT", "SETINFO", "LIB-VER", version}} {
				if set[len(set)-1] != "" {
					require.Equal(t, inproc.OK, c.Do(set...))
				}
			}
			return c
		}
		named("orders", "lettuce", "6.5.0")
		f.Dial() // a client without a name and library
		for range server.FirstLooks {
			require.Empty(t, look(), "clients come back after a start")
		}
		require.Empty(t, look())
		named("orders", "lettuce", "6.8.1")
		named("orders", "lettuce", "6.8.1")
		require.Equal(t, []string{"New library: orders now calls with lettuce 6.8.1, was lettuce 6.5.0 / 2 clients"}, look())
		require.Empty(t, look(), "once")
		named("billing", "", "")
		require.Equal(t, []string{"New clients: billing / 1 clients"}, look())
		named("", "jedis", "5")
		require.Equal(t, []string{"New clients: clients without a name with jedis 5 / 1 clients"}, look())
		for i := range 30 {
			named(fmt.Sprintf("worker%d", i), "", "")
		}
		noted := look()
		require.NotEmpty(t, noted)
		require.LessOrEqual(t, len(noted), 5)
		require.Empty(t, look(), "the others are known by now")
	})
}
