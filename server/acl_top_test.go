package server_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTopShowsKeysThatTheUserMayRead alone, whatever it is asked for; a user of several selectors
// those of all of them.
func TestTopShowsKeysThatTheUserMayRead(t *testing.T) {
	f := start(t, "auto")
	c := f.dial()
	for _, key := range []string{"app:1", "secret:1", "other:1", "write:1"} {
		for range 40 {
			c.do("CL.THROTTLE", key, "0", "1", "3600")
		}
	}
	for name, rules := range map[string][]string{
		"app":    {"~app:*", "+rl.top"},
		"writer": {"~app:*", "%W~write:*", "+rl.top"},
		"two":    {"~app:*", "+rl.top", "(%R~other:* +get)"},
		"none":   {"+rl.top"},
		"all":    {"~*", "+rl.top"},
	} {
		require.Equal(t, okReply, c.do(append([]string{"ACL", "SETUSER", name, "on", "nopass"}, rules...)...))
	}
	for user, may := range map[string][]string{
		"app": {"app:1"}, "writer": {"app:1"}, "two": {"app:1", "other:1"}, "none": {}, "all": {"app:1", "secret:1", "other:1", "write:1"},
	} {
		u := f.dial()
		require.Equal(t, okReply, u.do("AUTH", user, "any"))
		for _, call := range [][]string{{"RL.TOP"}, {"RL.TOP", "CALLS"}, {"RL.TOP", "WITHDETAILS"}, {"RL.TOP", "COUNT", "1"}} {
			reply := u.do(call...)
			for _, key := range []string{"app:1", "secret:1", "other:1", "write:1"} {
				allowed := false
				for _, m := range may {
					allowed = allowed || m == key
				}
				switch {
				case !allowed:
					require.NotContains(t, reply, key, "%s: %v", user, call)
				case len(call) == 1:
					require.Contains(t, reply, key, "%s: %v", user, call)
				}
			}
		}
	}
}
