package policies_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestLongListsOfChangesAreOnTheAccountOfLongReplies: lists of changes count as long replies
// until they are read, so that their readers get memory in turn.
func TestLongListsOfChangesAreOnTheAccountOfLongReplies(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start("--maxmemory", "64mb")
		admin := s.Dial()
		const changes = 1000
		for i := range changes {
			reason := fmt.Sprint(i, strings.Repeat("r", 1000))
			require.Equal(t, inproc.OK, admin.Do("RL.POLICY", "SET", "api", "COMMENT", reason, "LIMITS", "SW", "1", "60"))
		}
		require.Zero(t, s.Engine().LargeReplies())
		admin.Command("RL.CHANGES", "COUNT", "10000")
		w.Settle()
		require.Greater(t, s.Engine().LargeReplies(), int64(changes*1000))
		require.Equal(t, changes, strings.Count(admin.Reply(), inproc.Bulk("before")))
		w.Settle()
		require.Zero(t, s.Engine().LargeReplies())
		require.Equal(t, 10, strings.Count(admin.Do("RL.CHANGES"), inproc.Bulk("before")))
	})
}

// TestChangesOfLongWordsTakeLittle: of a call with long or many arguments the list of changes
// keeps only the beginning.
func TestChangesOfLongWordsTakeLittle(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start()
		c := s.Dial()
		limits := slices.Repeat([]string{"SW", "1", "60"}, 16)
		require.Equal(t, inproc.OK, c.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", "1", "60"))
		require.Equal(t, inproc.OK, c.Do("RL.BLOCK", "api", "one", "REASON", strings.Repeat("r", 500)))
		require.Equal(t, inproc.OK, c.Do(append([]string{"RL.OVERRIDE", "SET", "api", "two", "LIMITS"}, limits...)...))
		all := s.Engine().Changes.Since(1) // after the start
		require.Len(t, all, 3)
		require.Equal(t, "api:one", all[1].Key)
		require.Equal(t, "one REASON "+strings.Repeat("r", 64)+"…", all[1].Words)
		require.Equal(t, 24, strings.Count(all[2].Words, " "))
		require.True(t, strings.HasSuffix(all[2].Words, " …"))
	})
}
