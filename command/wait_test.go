package command_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// clocked is a store of which the test uses only the clock.
type clocked struct{ env.Store }

func (clocked) Now() limit.Instant                   { return 1 }
func (clocked) Civil(at limit.Instant) limit.Instant { return at }

// TestWaitIsCheckedWhoseRulesChangedBeforeItBegan: a user may lose the permission between the check
// of a call and the start of its wait. The call is not checked again before it is woken.
func TestWaitIsCheckedWhoseRulesChangedBeforeItBegan(t *testing.T) {
	cmd := &command.Command{Name: "get", Arity: 2, Flags: command.FlagReadonly, Keys: command.OneKey, Group: "string", Summary: "s.", Syntax: "key", Since: "1.0.0", Complexity: "O(1)", Reply: "r", Run: func(*command.Call) {}}
	table := command.NewTable([]command.Group{{Commands: []*command.Command{cmd}}})
	server := &command.Server{Users: acl.NewUsers(table), Commands: table}
	server.ActiveLimits.Store(&env.Limits{})
	u, _, err := server.Users.Set("app", []string{"on", "+get", "~a"})
	require.NoError(t, err)
	cl := &command.Client{Server: server}
	cl.User.Store(u)
	c := &command.Call{Worker: &command.Worker{Server: server}, Client: cl, Cmd: cmd, Args: [][]byte{[]byte("GET"), []byte("a")}}
	require.Equal(t, acl.DeniedNothing, cmd.Refused(u.Rules(), c.Args, true).Reason)
	_, _, err = server.Users.Set("app", []string{"-get"})
	require.NoError(t, err)
	p := c.NewWait(0)
	p.Args = c.Args
	require.Equal(t, resp.Error("NOPERM User app has no permissions to run the 'get' command"), p.Forbidden(clocked{}))
}
