package server_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

const fooTwo = "domain: rl\ndescriptors:\n- {key: foo, rate_limit: {unit: minute, requests_per_unit: 2}}\n"

// TestRulesAreLoadedWhenTheirFilesChange: the limits of files are policies, which commands cannot change, a file
// with a fault changes nothing, and files that change are in force after a second.
func TestRulesAreLoadedWhenTheirFilesChange(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		dir := t.TempDir()
		write := func(text string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text), 0o600))
		}
		write(fooTwo)
		n := w.Start("--rls-config", dir)
		c := n.Dial()
		time.Sleep(500 * time.Millisecond) // the server looks at the files at other instants than this test changes them
		limitIs := func(limits string) {
			t.Helper()
			require.Contains(t, c.Do("RL.POLICY", "GET", "rls.rl.foo"), inproc.Array(inproc.Bulk(limits)))
		}
		limitIs("SW 2 60 FIXED")
		require.Contains(t, c.Do("RL.POLICY", "GET", "rls.rl.foo"), inproc.Bulk("file")+":1\r\n")
		require.Equal(t, "-ERR policy 'rls.rl.foo' is defined by the rules of "+dir+"\r\n", c.Do("RL.POLICY", "DEL", "rls.rl.foo"))
		require.Equal(t, "+OK\r\n", c.Do("RL.BLOCK", "rls.rl.foo", "acme", "EX", "3600"))
		require.Contains(t, c.Do("RL.USE", "rls.rl.foo", "acme"), "*5\r\n:1\r\n:2\r\n:0\r\n:3600\r\n")

		write(fooTwo + "- {key: bar, rate_limit: {unit: x}}\n")
		time.Sleep(2 * time.Second)
		require.Contains(t, n.Log.String(), "the rules were not loaded")
		require.Contains(t, n.Log.String(), "a.yaml:4: the unit")
		require.Contains(t, c.Do("RL.POLICY", "RELOAD"), "a.yaml:4: the unit")
		limitIs("SW 2 60 FIXED")

		write("domain: rl\ndescriptors:\n- {key: foo, rate_limit: {unit: hour, requests_per_unit: 30}}\n")
		time.Sleep(2 * time.Second)
		limitIs("SW 30 3600 FIXED")
		require.Contains(t, c.Do("RL.USE", "rls.rl.foo", "acme"), "*5\r\n:1\r\n:30\r\n:0\r\n")
		write(fooTwo)
		require.Equal(t, ":1\r\n", c.Do("RL.POLICY", "RELOAD"))
		limitIs("SW 2 60 FIXED")
		require.Equal(t, ":0\r\n", c.Do("RL.POLICY", "RELOAD"))
		require.NoError(t, os.RemoveAll(dir))
		time.Sleep(2 * time.Second)
		limitIs("SW 2 60 FIXED")
	})
}

// TestRulesAreShown: RL.RULES and RL.MATCH show the rules in force, also while a store has not told its policies yet.
func TestRulesAreShown(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		file := filepath.Join(t.TempDir(), "a.yaml")
		require.NoError(t, os.WriteFile(file, []byte(fooTwo), 0o600))
		e := newSharedStore(t)
		e.setAway(true)
		c := startOver(w, e, "--rls-config", file).Dial()
		time.Sleep(500 * time.Millisecond) // the server looks at the files at other instants than this test changes them
		require.Contains(t, c.Do("RL.POLICY", "GET", "rls.rl.foo"), "-UNAVAILABLE ")
		require.Contains(t, c.Do("RL.RULES"), inproc.Bulk(file+":3"))
		require.Contains(t, c.Do("RL.MATCH", "rl", "foo=x"), inproc.Bulk("SW 2 60 FIXED"))
		require.Contains(t, c.Do("RL.MATCH", "rl", "bar=x"), "no limit applies")
		require.NoError(t, os.WriteFile(file, []byte(fooTwo+"- {key: bar, rate_limit: {unlimited: true}}\n"), 0o600))
		time.Sleep(2 * time.Second)
		require.Contains(t, c.Do("RL.MATCH", "rl", "bar=x"), inproc.Bulk("rls.rl.bar"))
		require.Contains(t, c.Do("RL.RULES", "rl"), inproc.Bulk("total")+":2\r\n")
		require.NoError(t, os.WriteFile(file, []byte("domain: rl\n"), 0o600))
		require.Contains(t, c.Do("RL.POLICY", "RELOAD"), ":2\r\n")
		require.Contains(t, c.Do("RL.RULES", "rl"), inproc.Bulk("total")+":0\r\n")
	})
}
