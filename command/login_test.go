package command_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/command"
)

// TestLoginDuringADeletion: the deletion of a user closes the user's clients. A client that logs in
// as that user at the same time must be closed or refused, whichever of the two happens first.
func TestLoginDuringADeletion(t *testing.T) {
	us := acl.NewUsers(command.NewTable(nil))
	_, _, err := us.Set("app", []string{"on", ">p"})
	require.NoError(t, err)
	cl := &command.Client{Server: &command.Server{Users: us}}
	cl.User.Store(us.Default)
	asked := 0
	find := func() (*acl.User, bool) {
		asked++
		u, ok := us.Authenticate("app", []byte("p"))
		if asked == 1 {
			require.Len(t, us.Delete([]string{"app"}), 1)
		}
		return u, ok
	}
	require.False(t, cl.LoginAs(find))
	require.Equal(t, 2, asked)
	require.Same(t, us.Default, cl.User.Load())
	require.False(t, cl.Authed)

	again, _, err := us.Set("app", []string{"on", ">p"})
	require.NoError(t, err)
	require.True(t, cl.LoginAs(find))
	require.Equal(t, 3, asked)
	require.Same(t, again, cl.User.Load())
	require.True(t, cl.Authed)
}
