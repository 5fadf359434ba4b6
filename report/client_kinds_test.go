package report_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/report"
)

// TestNewKindsOfClientsAreChanges: another library, or another version, is recorded once. Clients
// that reconnect after a start are not, and many kinds at once cannot fill the list.
func TestNewKindsOfClientsAreChanges(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		var kinds report.ClientKinds
		e := f.Engine()
		clients := func(yield func(report.ClientKind) bool) {
			for _, c := range e.Clients() {
				is := c.Identity()
				if !yield(report.ClientKind{Name: is.Name, Lib: is.LibName, Version: is.LibVer}) {
					return
				}
			}
		}
		look := func() (texts []string) {
			for range report.LookEvery {
				kinds.Look(clients, func(text, by string) { texts = append(texts, text+" / "+by) })
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
		for range report.FirstLooks {
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
