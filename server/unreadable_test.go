package server_test

import (
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	store "github.com/cellserver/cellserver/remote/records"
)

// ignores is an observer that ignores all.
type ignores struct{}

func (ignores) ObserveChange(iter.Seq2[[]byte, []byte]) {}
func (ignores) ObserveAll(iter.Seq2[[]byte, []byte])    {}

// change writes records into the store as a server of a later release would: pairs has keys and values alternately.
func (e *sharedStore) change(t *testing.T, pairs ...string) {
	t.Helper()
	s := store.New(store.Options{Engine: e, Observer: ignores{}, Now: e.clock.Now})
	_, err := s.Refresh()
	require.NoError(t, err)
	var all [][]byte
	for _, s := range pairs {
		all = append(all, []byte(s))
	}
	require.NoError(t, s.SetStrings(all, 0))
}

// TestPoliciesThatCannotBeRead: calls under them get the answer of fail-policy, whatever an older record said.
func TestPoliciesThatCannotBeRead(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		node := startOver(w, e, "--fail-policy", "local", "open:", "open", "closed:", "closed")
		c := node.Dial()
		const count = "store_policies_unreadable:"
		for _, name := range []string{"open", "closed", "else", "fine"} {
			require.Equal(t, inproc.OK, c.Do("RL.POLICY", "SET", name, "LIMITS", "SW", "2", "60", "LOG"))
		}
		require.Contains(t, c.Do("INFO", "store"), count+"0\r\n")
		e.change(t, "main/open", `{"limits":["ZZ 1"]}`, "main/closed", "?", "later/else", "x", "later/new/k", "x", "later", "x")
		follows()
		require.Equal(t, inproc.Five(0, 4294967295, 4294967295, -1, 0), c.Do("RL.USE", "open", "k"))
		require.Contains(t, c.Do("RL.EXPLAIN", "open", "k"), "NONE")
		for _, name := range []string{"closed", "else", "new"} {
			require.Contains(t, c.Do("RL.USE", name, "k"), "-UNAVAILABLE the policy cannot be read by this server: ", name)
			require.Contains(t, c.Do("RL.EXPLAIN", name, "k"), "-UNAVAILABLE the policy cannot be read by this server: ", name)
		}
		require.Equal(t, inproc.Five(0, 2, 1, -1, 60), c.Do("RL.USE", "fine", "k"))
		require.Contains(t, c.Do("INFO", "store"), count+"4\r\n")
		require.Contains(t, node.Log.String(), "a record of policies cannot be read")

		require.Equal(t, inproc.OK, c.Do("RL.POLICY", "SET", "closed", "LIMITS", "SW", "2", "60", "LOG"))
		require.Equal(t, inproc.Five(0, 2, 1, -1, 60), c.Do("RL.USE", "closed", "k"), "it was set again")
		e.change(t, "later/else", "", "later/new/k", "", "main/open", "")
		follows()
		require.Equal(t, inproc.Five(0, 2, 1, -1, 60), c.Do("RL.USE", "else", "k"))
		require.Contains(t, c.Do("RL.USE", "new", "k"), "-NOPOLICY")
		require.Contains(t, c.Do("INFO", "store"), count+"0\r\n")
	})
}
