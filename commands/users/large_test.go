package users_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestLongListsOfUsersAreOnTheAccountOfLongReplies: lists of users count as long replies until
// they are read, so that their readers get memory in turn and are not closed because of it.
func TestLongListsOfUsersAreOnTheAccountOfLongReplies(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start("--maxmemory", "64mb")
		c := s.Dial()
		const users = 1000
		long := strings.Repeat("k", 1000)
		for i := range users {
			require.Equal(t, inproc.OK, c.Do("ACL", "SETUSER", fmt.Sprint(i, long), "~"+long))
		}
		for _, command := range []string{"LIST", "USERS"} {
			require.Zero(t, s.Engine().LargeReplies())
			c.Command("ACL", command)
			w.Settle()
			require.Greater(t, s.Engine().LargeReplies(), int64(users*len(long)/2), command)
			require.Contains(t, c.Reply(), fmt.Sprintf("*%d\r\n", users+1))
			w.Settle()
		}
		require.Zero(t, s.Engine().LargeReplies())
	})
}
