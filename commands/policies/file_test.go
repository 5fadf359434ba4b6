package policies_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/internal/inproc"
)

const goodPolicies = `policies:
  api:
    comment: gold
    limits: [SW 10 3600 FIXED]
    overrides:
      vip*:
        limits: [SW 77 3600 FIXED]
  quiet:
    shadow: true
    limits: [SW 1 3600 FIXED]
`

// policyFile is a policy file that a test changes.
type policyFile struct {
	t    testing.TB
	path string
}

func newPolicyFile(t testing.TB, text string) *policyFile {
	t.Helper()
	dir, err := os.MkdirTemp("", "") // a short path, because the errors that name it for each fault have a maximum length
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	f := &policyFile{t, filepath.Join(dir, "policies.yaml")}
	f.write(text)
	return f
}

func (f *policyFile) write(text string) {
	f.t.Helper()
	require.NoError(f.t, os.WriteFile(f.path, []byte(text), 0o600))
}

// fileChanges returns how many changes came from a policy file.
func fileChanges(c *inproc.Client) int {
	return strings.Count(c.Say("RL.CHANGES COUNT 1000"), inproc.Bulk("command")+inproc.Bulk("policy-file"))
}

// TestPolicyFileIsInForceWholeOrNotAtAll: a policy file takes effect completely or not at all, at
// the start and after each kind of reload.
func TestPolicyFileIsInForceWholeOrNotAtAll(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		file := newPolicyFile(t, goodPolicies)
		f := w.Start("--policy-file", file.path)
		c := f.Dial()
		require.Equal(t, inproc.Array(inproc.Bulk("api"), inproc.Bulk("quiet")), c.Say("RL.POLICY LIST"))
		require.Equal(t, inproc.Five(0, 77, 76, -1, 2800), c.Say("RL.USE api vip1"))
		require.Equal(t, inproc.Five(0, 10, 9, -1, 2800), c.Say("RL.USE api k"))
		require.Equal(t, 2, fileChanges(c), "one for each policy")
		before, history := c.Say("RL.POLICY DUMP"), c.Say("RL.CHANGES")

		bad := strings.ReplaceAll(goodPolicies, "SW 77 3600", "SW -1 3600") + "  third:\n    limit: [TB 1 1 1]\n  'a:b':\n    limits: [TB 1 1 1, XX 1]\n"
		file.write(bad)
		for _, reload := range []func() string{
			func() string { return c.Say("RL.POLICY RELOAD") },
			func() string { return c.Say("CONFIG RELOAD") },
			func() string { return fmt.Sprint(f.Reload("SIGHUP")) },
		} {
			reply := reload()
			for _, line := range []int{7, 12, 13} {
				require.Contains(t, reply, fmt.Sprintf("%s:%d: ", file.path, line))
			}
			require.Equal(t, before, c.Say("RL.POLICY DUMP"))
			require.Equal(t, history, c.Say("RL.CHANGES"))
		}
		for _, line := range []int{7, 11, 12, 13, 14} {
			require.Contains(t, f.Log.String(), fmt.Sprintf("%s:%d: ", file.path, line), "the log has every fault")
		}
		require.NoError(t, os.Remove(file.path))
		require.Contains(t, c.Say("RL.POLICY RELOAD"), file.path)
		require.Error(t, f.Reload("SIGHUP"))
		require.Equal(t, before, c.Say("RL.POLICY DUMP"))

		file.write(strings.ReplaceAll(goodPolicies, "SW 10 ", "SW 20 "))
		require.NoError(t, f.Reload("SIGHUP"))
		require.Equal(t, inproc.Five(0, 20, 18, -1, 2800), c.Say("RL.USE api k"))
		require.Equal(t, 3, fileChanges(c))
		require.NoError(t, f.Reload("SIGHUP"))
		require.Equal(t, ":0\r\n", c.Say("RL.POLICY RELOAD"))
		require.Equal(t, 3, fileChanges(c), "nothing has changed")
		file.write(strings.ReplaceAll(goodPolicies, "  quiet:", "  loud:"))
		require.Equal(t, ":3\r\n", c.Say("RL.POLICY RELOAD"), "of api, quiet and loud")
		require.Equal(t, inproc.Array(inproc.Bulk("api"), inproc.Bulk("loud")), c.Say("RL.POLICY LIST"))
		require.Contains(t, c.Say("RL.CHANGES COUNT 1"), inproc.Bulk("RL.POLICY RELOAD"))
	})
}

// TestWhatAFileDefines: commands cannot change what the file defines, and their error names the
// file. Temporary entries, other policies, and other overrides of the file's policies can be set.
func TestWhatAFileDefines(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		file := newPolicyFile(t, goodPolicies)
		f := w.Start("--policy-file", file.path)
		c := f.Dial()
		require.NotEqual(t, "*0\r\n", c.Say("RL.POLICY LIST"))
		other := strings.ReplaceAll(goodPolicies, "SW 10 ", "SW 20 ")
		for _, call := range [][]string{
			strings.Fields("RL.POLICY SET api LIMITS TB 1 1 1"), strings.Fields("RL.POLICY DEL api"),
			strings.Fields("RL.OVERRIDE SET api vip* LIMITS TB 1 1 1"), strings.Fields("RL.OVERRIDE DEL api vip*"),
			{"RL.POLICY", "APPLY", other},
		} {
			reply := c.Do(call...)
			require.True(t, strings.HasPrefix(reply, "-ERR "), "%q: %s", call, reply)
			require.Contains(t, reply, "policy 'api' is defined by the policy file "+file.path)
		}
		require.Equal(t, 2, strings.Count(c.Say("RL.CHANGES COUNT 100"), inproc.Bulk("id")))
		c.Set("RL.BOOST api k 2 EX 10", "RL.BLOCK api b EX 10", "RL.EXEMPT api e EX 10",
			"RL.OVERRIDE SET api own LIMITS SW 5 3600 FIXED", "RL.POLICY SET mine LIMITS SW 6 3600 FIXED",
			"RL.POLICY TRY api LIMITS TB 1 1 60", "RL.POLICY TRY api OFF")
		require.Equal(t, ":1\r\n", c.Do("RL.POLICY", "APPLY", goodPolicies+"  mine:\n    limits: [SW 6 3600 FIXED]\n"), "own goes")
		file.write(other)
		require.NoError(t, f.Reload("a test"))
		require.Equal(t, inproc.Five(0, 6, 5, -1, 2800), c.Say("RL.USE mine k"), "the file leaves what commands have set")
		require.Equal(t, inproc.Five(0, 40, 39, -1, 2800), c.Say("RL.USE api k"), "boosted")
		require.Equal(t, inproc.Five(1, 20, 0, 10, 10), c.Say("RL.USE api b"))
		w.Advance(10 * time.Second)
		require.Equal(t, inproc.Five(0, 20, 18, -1, 2790), c.Say("RL.USE api k"))
		require.Contains(t, c.Say("RL.POLICY GET api"), inproc.Bulk("file")+":1\r\n")
		require.Contains(t, c.Say("RL.POLICY GET mine"), inproc.Bulk("file")+":0\r\n")
	})
}

// TestPolicyFileOverRestarts: a file that is already in the log makes no changes. Without the
// option its entries stay, and commands may change them.
func TestPolicyFileOverRestarts(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		file := newPolicyFile(t, goodPolicies)
		options := []string{"--policy-file", file.path, "--appendonly", "yes"}
		disk := faultfs.New()
		run := func(options ...string) (*inproc.Node, *inproc.Client) {
			f := w.StartOn(disk, options...)
			return f, f.Dial()
		}
		var history string
		for round := range 3 {
			f, c := run(options...)
			require.Equal(t, 2, fileChanges(c), "round %d", round)
			if round == 0 {
				history = c.Say("RL.CHANGES")
				c.Set("RL.BOOST api k 3 EX 1000")
			}
			require.Equal(t, inproc.Five(0, 30, 30, -1, 0), c.Say("RL.USE api k 0"))
			require.NoError(t, f.Stop())
		}
		file.write(strings.ReplaceAll(goodPolicies, "SW 10 ", "SW 20 "))
		f, c := run(options...)
		require.Equal(t, inproc.Five(0, 60, 60, -1, 0), c.Say("RL.USE api k 0"), "from the first call")
		require.Equal(t, 3, fileChanges(c))
		require.NoError(t, f.Stop())
		f, c = run("--appendonly", "yes")
		require.Equal(t, inproc.Five(0, 60, 60, -1, 0), c.Say("RL.USE api k 0"), "the entries stay")
		c.Set("RL.POLICY SET api LIMITS SW 5 3600 FIXED")
		require.Equal(t, ":1\r\n", c.Say("RL.OVERRIDE DEL api vip*"))
		require.Equal(t, inproc.Five(0, 15, 15, -1, 0), c.Say("RL.USE api k 0"))
		require.Contains(t, c.Say("RL.CHANGES COUNT 100"), history[strings.Index(history, inproc.Bulk("id")):])
		require.NoError(t, f.Stop())
		_, c = run(options...)
		require.Equal(t, inproc.Five(0, 60, 60, -1, 0), c.Say("RL.USE api k 0"), "again from the first call")
		require.Equal(t, inproc.Five(0, 77, 77, -1, 0), c.Say("RL.USE api vip9 0"))
	})
}
