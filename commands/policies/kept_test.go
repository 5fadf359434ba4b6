package policies_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/internal/inproc"
)

// hour is a policy with a limit that nothing refills while a test lasts.
const hour = "RL.POLICY SET api LIMITS SW 10 3600 FIXED ANCHOR FIRST"

// rewrite rewrites the log, and returns when the files of before are gone.
func rewrite(w *inproc.World, c *inproc.Client) {
	c.Say("BGREWRITEAOF")
	w.Until("rewritten", time.Millisecond, time.Minute, func() bool { return c.Info("aof_base_size") != "0" && c.Info("aof_rewrite_in_progress") == "0" })
}

// temporary sets an entry of each kind that ends in ten seconds, each for a key of its own.
func temporary(c *inproc.Client) {
	c.Set(hour,
		"RL.BOOST api boosted 2.5 EX 10", "RL.BLOCK api blocked* EX 10 REASON abuse", "RL.EXEMPT api exempt EX 10",
		"RL.OVERRIDE SET api over* EX 10 COMMENT large LIMITS SW 77 3600 FIXED ANCHOR FIRST")
}

// hasTemporary wants what temporary has set to be in force, or to be over.
func hasTemporary(t testing.TB, c *inproc.Client, inForce bool, left int64) {
	never := inproc.Five(1, 10, 10, -1, 0) // 1000 units of ten
	want := [4]string{never, never, never, never}
	if inForce {
		want = [4]string{inproc.Five(1, 25, 25, -1, 0), inproc.Five(1, 10, 0, left, left), inproc.Five(0, 10, 10, -1, 0), inproc.Five(1, 77, 77, -1, 0)}
	}
	for i, key := range []string{"boosted", "blocked1", "exempt", "over1"} {
		require.Equal(t, want[i], c.Do("RL.USE", "api", key, "1000"), key)
	}
}

// TestEntriesEndToTheNanosecond: boosts, blocks, exemptions and overrides with EX are in force
// until a nanosecond before their end and not at that instant. This holds for a running server,
// and after a restart from the log, from a rewritten log or from a snapshot.
func TestEntriesEndToTheNanosecond(t *testing.T) {
	const lasts = 10 * time.Second
	for name, again := range map[string]func(t *testing.T, w *inproc.World, f *inproc.Node) (left *faultfs.FS){
		"goes on": nil,
		"killed":  func(_ *testing.T, _ *inproc.World, f *inproc.Node) *faultfs.FS { return f.Left() },
		"stopped": func(t *testing.T, _ *inproc.World, f *inproc.Node) *faultfs.FS {
			require.NoError(t, f.Stop())
			return f.Left()
		},
		"rewritten": func(_ *testing.T, w *inproc.World, f *inproc.Node) *faultfs.FS {
			rewrite(w, f.Dial())
			return f.Left()
		},
		"saved": func(t *testing.T, _ *inproc.World, f *inproc.Node) *faultfs.FS {
			require.Equal(t, inproc.OK, f.Dial().Do("SAVE"))
			return f.Left()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				f := w.Start("--appendonly", map[bool]string{true: "no", false: "yes"}[name == "saved"])
				c := f.Dial()
				temporary(c)
				end := inproc.Epoch.Add(lasts)
				if again == nil {
					hasTemporary(t, c, true, 10)
					w.Advance(end.Sub(f.Now()) - 1)
					hasTemporary(t, c, true, 1)
					w.Advance(1)
					hasTemporary(t, c, false, 0)
					return
				}
				left := again(t, w, f)
				copied := left.Kill()
				before := w.StartAt(end-1, left, "--appendonly", "yes")
				hasTemporary(t, before.Dial(), true, 1)
				w.Advance(1)
				hasTemporary(t, before.Dial(), false, 0)
				over := w.StartAt(end, copied, "--appendonly", "yes")
				hasTemporary(t, over.Dial(), false, 0)
				require.Equal(t, 5, strings.Count(over.Dial().Do("RL.CHANGES"), inproc.Bulk("policy")))
			})
		})
	}
}

// TestFlushesLeavePolicies: FLUSHALL and FLUSHDB delete the state of keys, and no policy.
func TestFlushesLeavePolicies(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start("--appendonly", "yes")
		c := f.Dial()
		temporary(c)
		changes := c.Say("RL.CHANGES COUNT 100")
		for _, flush := range []string{"FLUSHALL", "FLUSHDB", "FLUSHALL ASYNC", "FLUSHDB SYNC"} {
			require.Equal(t, inproc.Five(0, 10, 7, -1, 3600), c.Say("RL.USE api k 3"))
			require.Equal(t, ":1\r\n", c.Do("DBSIZE"))
			c.Set(flush)
			require.Equal(t, ":0\r\n", c.Do("DBSIZE"))
			hasTemporary(t, c, true, 10)
			require.Equal(t, changes, c.Say("RL.CHANGES COUNT 100"))
		}
		kept := w.StartOn(f.Left(), "--appendonly", "yes").Dial()
		hasTemporary(t, kept, true, 10)
		require.Equal(t, changes, kept.Say("RL.CHANGES COUNT 100"))
	})
}

// TestPoliciesAreOutOfReach: no command for keys shows, counts or changes the records of
// policies.
func TestPoliciesAreOutOfReach(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		c := f.Dial()
		c.Set(hour)
		require.Equal(t, ":0\r\n", c.Do("DBSIZE"))
		require.Equal(t, "*0\r\n", c.Do("KEYS", "*"))
		require.Equal(t, "*2\r\n$1\r\n0\r\n*0\r\n", c.Do("SCAN", "0"))
		for _, db := range []string{"16", "-1", "255", "256", "65535", "65536", "4294967295", "9223372036854775807"} {
			for _, words := range [][]string{{"SELECT", db}, {"SWAPDB", "0", db}, {"MOVE", "main/api", db}, {"COPY", "main/api", "x", "DB", db}} {
				reply := c.Do(words...)
				require.True(t, reply[0] == '-' || reply == ":0\r\n", "%q: %s", words, reply)
			}
		}
		require.NotContains(t, c.Do("INFO", "keyspace"), "db")
		require.Equal(t, inproc.Array(inproc.Bulk("api")), c.Say("RL.POLICY LIST"))
	})
}

// TestChangesAreBounded: RL.CHANGES, the log and the store have the latest 10,000 changes, also
// after a restart.
func TestChangesAreBounded(t *testing.T) {
	effort.Alone(t)
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start("--appendonly", "yes", "--appendfsync", "no")
		c := f.Dial()
		c.Set(hour)
		const many, more = 10_000, 250
		for range (many + more) / 50 {
			var all []byte
			for range 50 {
				all = append(all, inproc.Encode(nil, "RL.BLOCK", "api", "k", "EX", "9")...)
			}
			c.Send(string(all))
			for range 50 {
				c.Expect(inproc.OK)
			}
		}
		look := func(c *inproc.Client) string {
			all := c.Do("RL.CHANGES", "COUNT", "1000000")
			require.True(t, strings.HasPrefix(all, "*10000\r\n"), all[:20])
			require.Equal(t, many, strings.Count(all, inproc.Bulk("id")))
			require.Contains(t, all[:100], ":10251\r\n")
			require.NotContains(t, all, inproc.Bulk("id")+":251\r\n")
			require.Contains(t, all, inproc.Bulk("id")+":252\r\n")
			return all
		}
		all := look(c)
		f.Keyspace().Sweep(1 << 20)
		records := 0
		for key := range f.State() {
			if strings.Contains(key, "/change/") {
				records++
			}
		}
		require.Equal(t, many, records)
		require.Equal(t, all, look(w.StartOn(f.Left(), "--appendonly", "yes").Dial()))
		rewrite(w, c)
		left := f.Left()
		again := w.StartOn(left, "--appendonly", "yes")
		require.Equal(t, all, look(again.Dial()))
		again.Dial().Set("RL.BLOCK api other EX 9")
		require.Contains(t, again.Dial().Do("RL.CHANGES", "COUNT", "1"), ":10252\r\n")
	})
}
