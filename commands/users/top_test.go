package users_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestTopShowsKeysThatTheUserMayRead: RL.TOP shows only keys that the user may read, with any
// options, and to a user with several selectors the keys of all of them.
func TestTopShowsKeysThatTheUserMayRead(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		names := []string{"app", "secret", "other", "write"}
		keys := map[string]string{}
		var f *inproc.Node
		var c *inproc.Client
		for n := 0; len(keys) < len(names); n++ { // two of the four keys may share a slot of the table
			f = w.Start()
			c = f.Dial()
			clear(keys)
			for _, name := range names {
				key := fmt.Sprintf("%s:%d", name, n)
				for range 40 {
					c.Do("CL.THROTTLE", key, "0", "1", "3600")
				}
				keys[name] = key
			}
			for name, key := range keys {
				if !strings.Contains(c.Do("RL.TOP"), key) {
					delete(keys, name)
				}
			}
		}
		for name, rules := range map[string][]string{
			"app":    {"~app:*", "+rl.top"},
			"writer": {"~app:*", "%W~write:*", "+rl.top"},
			"two":    {"~app:*", "+rl.top", "(%R~other:* +get)"},
			"none":   {"+rl.top"},
			"all":    {"~*", "+rl.top"},
		} {
			require.Equal(t, inproc.OK, c.Do(append([]string{"ACL", "SETUSER", name, "on", "nopass"}, rules...)...))
		}
		for user, may := range map[string][]string{
			"app": {"app"}, "writer": {"app"}, "two": {"app", "other"}, "none": {}, "all": names,
		} {
			u := f.Dial()
			require.Equal(t, inproc.OK, u.Do("AUTH", user, "any"))
			for _, call := range [][]string{{"RL.TOP"}, {"RL.TOP", "CALLS"}, {"RL.TOP", "WITHDETAILS"}, {"RL.TOP", "COUNT", "1"}} {
				reply := u.Do(call...)
				for _, name := range names {
					switch {
					case !slices.Contains(may, name):
						require.NotContains(t, reply, keys[name], "%s: %v", user, call)
					case len(call) == 1:
						require.Contains(t, reply, keys[name], "%s: %v", user, call)
					}
				}
			}
		}
	})
}
