package server_test

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/simnet"
	"github.com/cellserver/cellserver/server"
)

// policyFile writes a policy file with the given policies, and returns its path.
func policyFile(t *testing.T, policies string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policies.yaml")
	writePolicies(t, path, policies)
	return path
}

func writePolicies(t *testing.T, path, policies string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte("policies:\n"+policies), 0o600))
}

// TestEachServerHasItsPolicyFile: the file of a server lies over the policies in the store, on that server alone.
func TestEachServerHasItsPolicyFile(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		file := policyFile(t, "  api:\n    limits: [SW 5 60 LOG]\n    overrides:\n      vip:\n        limits: [SW 7 60 LOG]\n")
		other := policyFile(t, "  api:\n    limits: [SW 6 60 LOG]\n")
		one, two := startOver(w, e, "--policy-file", file).Dial(), startOver(w, e, "--policy-file", other).Dial()
		bare := startOver(w, e).Dial()
		require.Equal(t, inproc.Five(0, 5, 4, -1, 60), one.Do("RL.USE", "api", "a"))
		require.Equal(t, inproc.Five(0, 6, 5, -1, 60), two.Do("RL.USE", "api", "b"))
		require.Equal(t, inproc.Five(0, 7, 6, -1, 60), one.Do("RL.USE", "api", "vip"))
		require.Equal(t, "-NOPOLICY No such policy 'api'\r\n", bare.Do("RL.USE", "api", "c"))
		require.Equal(t, "*0\r\n", bare.Do("RL.POLICY", "LIST"))
		require.Equal(t, "*0\r\n", one.Do("RL.CHANGES"), "the store has nothing of a file")

		for _, words := range []string{
			"RL.POLICY SET api LIMITS SW 1 1", "RL.POLICY DEL api", "RL.OVERRIDE SET api vip LIMITS SW 1 1", "RL.OVERRIDE DEL api vip",
		} {
			said := one.Do(strings.Fields(words)...)
			require.Contains(t, said, "policy 'api' is defined by the policy file "+file, words)
			require.True(t, strings.HasPrefix(said, "-ERR "), words)
		}
		require.Contains(t, one.Do("RL.POLICY", "APPLY", "policies: {api: {limits: [SW 1 1 LOG]}}"), "policy 'api' is defined by the policy file "+file)
		require.Equal(t, "$0\r\n\r\n", one.Do("RL.POLICY", "DIFF", "policies: {}"), "the file stays")
		require.Contains(t, one.Do("RL.POLICY", "GET", "api"), inproc.Bulk("file")+":1\r\n")
		require.Equal(t, inproc.Bulk("policies:\n  api:\n    limits: [SW 5 60 LOG]\n    overrides:\n      vip:\n        limits: [SW 7 60 LOG]\n"), one.Do("RL.POLICY", "DUMP", "FILE"))
		require.Equal(t, "+OK\r\n", one.Do("RL.POLICY", "SET", "mine", "LIMITS", "SW", "1", "60", "LOG"))
		require.Contains(t, one.Do("RL.POLICY", "GET", "mine"), inproc.Bulk("file")+":0\r\n")

		// What commands set under a policy of the file is for all servers that have the policy.
		require.Equal(t, "+OK\r\n", one.Do("RL.BLOCK", "api", "mallory", "EX", "100"))
		require.Equal(t, "+OK\r\n", one.Do("RL.OVERRIDE", "SET", "api", "gold", "LIMITS", "SW", "9", "60", "LOG"))
		require.Equal(t, "+OK\r\n", one.Do("RL.POLICY", "TRY", "api", "LIMITS", "SW", "1", "60", "LOG"))
		follows()
		require.Equal(t, inproc.Five(1, 6, 0, 100, 100), two.Do("RL.USE", "api", "mallory"))
		require.Equal(t, inproc.Five(0, 9, 8, -1, 60), two.Do("RL.USE", "api", "gold"))
		require.Equal(t, "*0\r\n", bare.Do("RL.CHANGES", "POLICY", "none"))
		require.Equal(t, inproc.Array(inproc.Bulk("mine")), bare.Do("RL.POLICY", "LIST"))
		require.Equal(t, ":0\r\n", bare.Do("RL.POLICY", "APPLY", "policies: {mine: {limits: [SW 1 60 LOG]}}"), "not those of the file either")

		// A server without the file has the policy of the store, with all that was set for it.
		require.Equal(t, "+OK\r\n", bare.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", "8", "60", "LOG"))
		require.Equal(t, inproc.Five(1, 8, 0, 100, 100), bare.Do("RL.USE", "api", "mallory"))
		follows()
		require.Equal(t, inproc.Five(0, 5, 4, -1, 60), one.Do("RL.USE", "api", "d"))

		// Without its entry in the file a server has that of the store, too.
		writePolicies(t, file, "  extra:\n    limits: [SW 3 60 LOG]\n")
		require.Equal(t, ":3\r\n", one.Do("RL.POLICY", "RELOAD"), "api and vip are gone, extra is new")
		require.Equal(t, ":0\r\n", one.Do("RL.POLICY", "RELOAD"))
		require.Equal(t, inproc.Five(0, 8, 7, -1, 60), one.Do("RL.USE", "api", "e"))
		require.Equal(t, inproc.Five(0, 3, 2, -1, 60), one.Do("RL.USE", "extra", "e"))
		require.Equal(t, ":1\r\n", one.Do("RL.POLICY", "DEL", "api"))
		follows()
		require.Equal(t, "-NOPOLICY No such policy 'api'\r\n", bare.Do("RL.USE", "api", "f"))
		require.Equal(t, inproc.Five(0, 6, 5, -1, 60), two.Do("RL.USE", "api", "mallory"), "the block went with the policy")
		require.NotContains(t, two.Do("RL.CHANGES", "COUNT", "100"), inproc.Bulk("policy-file"))
	})
}

// TestPolicyFileWithoutTheStore: a server that starts without the store serves the policies of its file at once.
func TestPolicyFileWithoutTheStore(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		one := startOver(w, e).Dial()
		require.Equal(t, "+OK\r\n", one.Do("RL.POLICY", "SET", "mine", "LIMITS", "SW", "1", "60", "LOG"))
		require.Equal(t, "+OK\r\n", one.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", "1", "60", "LOG"))
		require.Equal(t, "+OK\r\n", one.Do("RL.BLOCK", "api", "mallory", "EX", "100"))
		e.setAway(true)
		file := policyFile(t, "  api:\n    limits: [SW 5 60 LOG]\n")
		node := startOver(w, e, "--policy-file", file)
		late := node.Dial()
		require.Equal(t, inproc.Five(0, 5, 4, -1, 60), late.Do("RL.USE", "api", "k"))
		require.Contains(t, late.Do("RL.EXPLAIN", "api", "k"), "SW 5 60 LOG")
		const unread = "-UNAVAILABLE the policies of the store were not read yet\r\n"
		for _, words := range []string{
			"RL.USE mine k", "RL.USE none k", "RL.POLICY GET api", "RL.POLICY LIST", "RL.POLICY DUMP", "RL.POLICY DUMP FILE", "RL.OVERRIDE LIST api", "RL.CHANGES",
		} {
			require.Equal(t, unread, late.Do(strings.Fields(words)...), words)
		}
		require.Equal(t, ":1\r\n", late.Do("RL.RESET", "api", "k"))
		require.Equal(t, inproc.Five(0, 5, 4, -1, 60), late.Do("RL.USE", "api", "k"))
		require.Contains(t, late.Do("RL.BLOCK", "api", "k"), "-UNAVAILABLE ")
		writePolicies(t, file, "  api:\n    limits: [SW 6 60 LOG]\n  wrong\n")
		require.Contains(t, late.Do("RL.POLICY", "RELOAD"), file+":4: ")
		require.Equal(t, inproc.Five(0, 5, 3, -1, 60), late.Do("RL.USE", "api", "k"))
		writePolicies(t, file, "  api:\n    limits: [SW 6 60 LOG]\n")
		require.Equal(t, ":1\r\n", late.Do("RL.POLICY", "RELOAD"), "a file needs no store")
		require.Equal(t, inproc.Five(0, 6, 3, -1, 60), late.Do("RL.USE", "api", "k"))
		e.setAway(false)
		follows()
		require.Equal(t, inproc.Five(0, 6, 2, -1, 60), late.Do("RL.USE", "api", "k"))
		require.Equal(t, inproc.Five(1, 6, 0, 100, 100), late.Do("RL.USE", "api", "mallory"))
		require.Equal(t, inproc.Five(0, 1, 0, -1, 60), late.Do("RL.USE", "mine", "k"))
		require.Contains(t, late.Do("RL.POLICY", "GET", "api"), inproc.Bulk("allowed")+":5\r\n", "the counters go on")
	})
}

// TestFaultyPolicyFileOverAStore: the server does not start.
func TestFaultyPolicyFileOverAStore(t *testing.T) {
	file := policyFile(t, "  api:\n    limits: [SW 5]\n")
	c, err := config.Load([]string{"--store", "redis://127.0.0.1:1", "--policy-file", file}, nil)
	require.NoError(t, err)
	require.ErrorContains(t, server.Check(c), file+":3: ")
	e := newSharedStore(t)
	l, err := simnet.New().Listen("127.0.0.1:0")
	require.NoError(t, err)
	_, err = server.New(c, server.Options{Clock: e.clock, OpenStore: e.open, Listeners: []net.Listener{l}, Log: slog.New(slog.DiscardHandler)})
	require.ErrorContains(t, err, file+":3: ")
}

// TestPolicyFileOverAStoreIsReadAgain on SIGHUP and by CONFIG RELOAD, wholly or not at all.
func TestPolicyFileOverAStoreIsReadAgain(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		file := policyFile(t, "  api:\n    limits: [SW 5 60 LOG]\n")
		node := startOver(w, e, "--policy-file", file)
		c := node.Dial()
		capacity := int64(5)
		for _, reload := range []func() string{
			func() string { return c.Do("CONFIG", "RELOAD") },
			func() string {
				if err := node.Reload("SIGHUP"); err != nil {
					return err.Error()
				}
				return "+OK\r\n"
			},
		} {
			writePolicies(t, file, "  api:\n    limits: [SW 9 60 LOG]\n  other:\n    limits: [SW 9 60 LOG, X 1]\n")
			require.Contains(t, reload(), file+":5: ")
			require.Equal(t, inproc.Five(0, capacity, capacity, -1, 0), c.Do("RL.USE", "api", "k", "0"))
			capacity++
			writePolicies(t, file, strings.ReplaceAll("  api:\n    limits: [SW 5 60 LOG]\n", "SW 5", "SW "+string(rune('0'+capacity))))
			require.Equal(t, "+OK\r\n", reload())
			require.Equal(t, inproc.Five(0, capacity, capacity, -1, 0), c.Do("RL.USE", "api", "k", "0"))
		}
		require.Contains(t, node.Log.String(), "the policy file is in force")
	})
}

// TestPatternsThatAFileCannotUse: they are counted, and the log has one line without them.
func TestPatternsThatAFileCannotUse(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		e := newSharedStore(t)
		one := startOver(w, e).Dial()
		require.Equal(t, "+OK\r\n", one.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", "2", "60", "LOG"))
		require.Equal(t, "+OK\r\n", one.Do("RL.OVERRIDE", "SET", "api", "canary*", "LIMITS", "SW", "3", "60", "LOG"))
		require.Equal(t, "+OK\r\n", one.Do("RL.BLOCK", "api", "canary", "EX", "100"))
		node := startOver(w, e, "--policy-file", policyFile(t, "  api:\n    key: IP 32 56\n    limits: [SW 5 60 LOG]\n"))
		c := node.Dial()
		follows()
		require.Equal(t, inproc.Five(0, 5, 4, -1, 60), c.Do("RL.USE", "api", "10.0.0.1"))
		require.Contains(t, c.Do("INFO", "store"), "store_policies_unfit:2\r\n")
		require.Contains(t, one.Do("INFO", "store"), "store_policies_unfit:0\r\n")
		require.Equal(t, 1, strings.Count(node.Log.String(), "entries of policies in the store are not in force"))
		require.NotContains(t, node.Log.String(), "canary")
		require.Equal(t, "*0\r\n", c.Do("RL.OVERRIDE", "LIST", "api"))
		require.Contains(t, one.Do("RL.OVERRIDE", "LIST", "api"), "canary*")
	})
}
