package policies_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// allEntries sets one lasting entry of each kind, which the answers of allAnswers show.
func allEntries(t testing.TB, c *inproc.Client) {
	c.Set(hour,
		"RL.POLICY SET tried COMMENT gold LIMITS TB 5 1 3600 SW 9 3600 FIXED", "RL.POLICY TRY tried LIMITS TB 7 1 3600",
		"RL.POLICY SET quiet SHADOW COUNT LIMITS SW 1 3600 FIXED",
		"RL.POLICY SET harsh LIMITS SW 1 3600 FIXED BAN 1 60 3600", "RL.POLICY SET shared NOTIFY 80% CLASS batch KEEP 30% CLASS web KEEP 0% LIMITS SW 9 3600 FIXED", "RL.POLICY SET edge KEY IP 24 56 LIMITS SW 9 3600 FIXED", "RL.OVERRIDE SET edge 10.0.0.7/8 LIMITS SW 8 3600 FIXED",
		"RL.OVERRIDE SET api over* EX 100000 LIMITS SW 77 3600 FIXED", "RL.OVERRIDE SET api free LIMITS NONE", "RL.BOOST api boosted 2.5 EX 100000",
		"RL.BLOCK api blocked* EX 100000 REASON abuse", "RL.EXEMPT api exempt EX 100000",
		"RL.POLICY SET gone LIMITS TB 5 1 3600", "RL.BLOCK api gone EX 100000")
	require.Contains(t, c.Say("RL.USE harsh k 2"), ":1\r\n", "denied, which bans the key")
	require.Equal(t, ":1\r\n", c.Say("RL.POLICY DEL gone"))
	require.Equal(t, ":1\r\n", c.Say("RL.UNBLOCK api gone"))
}

// allAnswers returns replies that show what allEntries has set, without times.
func allAnswers(t testing.TB, c *inproc.Client) (all []string) {
	for _, key := range []string{"k", "over1", "boosted", "blocked1", "exempt", "gone", "free"} {
		_, answer, found := strings.Cut(c.Do("RL.EXPLAIN", "api", key, "1000"), inproc.Bulk("answer"))
		require.True(t, found)
		all = append(all, strings.Join(strings.SplitN(answer, "\r\n", 5)[:3], " "))
	}
	for _, name := range []string{"tried", "quiet", "edge", "shared", "harsh"} {
		stored, _, found := strings.Cut(c.Do("RL.POLICY", "GET", name), inproc.Bulk("counts")) // each server has its own counts
		require.True(t, found)
		all = append(all, stored)
	}
	_, banned, found := strings.Cut(c.Say("RL.EXPLAIN harsh k"), inproc.Bulk("applies"))
	require.True(t, found)
	banned, _, _ = strings.Cut(banned, inproc.Bulk("ttl"))
	require.Contains(t, banned, inproc.Bulk("ban"))
	all = append(all, banned)
	return append(all, c.Say("RL.POLICY LIST"), c.Say("RL.POLICY DUMP"), c.Say("RL.CHANGES COUNT 100"), c.Say("RL.EXPLAIN gone k"), c.Say("RL.EXPLAIN shared k 9 CLASS batch"), c.Say("RL.EXPLAIN edge 10.0.0.9"))
}

// changing are commands that change policies, which a replica refuses, and a user without the
// permission cannot call.
var changing = []string{
	"RL.POLICY SET api LIMITS TB 1 1 1", "RL.POLICY DEL api", "RL.POLICY TRY api OFF", "RL.POLICY TRY api LIMITS TB 1 1 1",
	"RL.POLICY APPLY policies:", "RL.POLICY RELOAD", "RL.OVERRIDE SET api k LIMITS TB 1 1 1", "RL.OVERRIDE DEL api k",
	"RL.BOOST api k 2 EX 9", "RL.UNBOOST api k", "RL.BLOCK api k EX 9", "RL.UNBLOCK api k", "RL.EXEMPT api k EX 9", "RL.UNEXEMPT api k",
}

// TestReplicasHavePolicies: a replica has the policies from before it connected, from later, and
// from the time when its link was cut. It cannot change them, and enforces all of them once it is
// promoted, as does a server that is restarted with its files.
func TestReplicasHavePolicies(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		primary := w.Start()
		c := primary.Dial()
		allEntries(t, c)
		first := w.Start("--appendonly", "yes")
		first.Dial().Set("RL.POLICY SET own LIMITS TB 1 1 1", "RL.BLOCK own * EX 1000")
		first.Follow(primary)
		primary.Agree(first)
		r := first.Dial()
		require.Equal(t, allAnswers(t, c), allAnswers(t, r))
		require.Contains(t, r.Say("RL.EXPLAIN own k"), "-NOPOLICY")
		for _, words := range changing {
			require.Contains(t, r.Say(words), "-READONLY", words)
		}
		require.Contains(t, r.Say("RL.USE api k"), "-READONLY")

		c.Set("RL.POLICY SET api LIMITS SW 20 3600 FIXED", "RL.OVERRIDE SET api k LIMITS SW 44 3600 FIXED")
		primary.Agree(first)
		require.Equal(t, allAnswers(t, c), allAnswers(t, r))
		full, _ := primary.Syncs()
		require.Equal(t, ":1\r\n", c.Do("CLIENT", "KILL", "TYPE", "replica"))
		c.Set("RL.BOOST api k 2 EX 100000", "RL.BLOCK api more* EX 100000")
		require.Equal(t, ":1\r\n", c.Say("RL.UNEXEMPT api exempt"))
		first.AwaitLink(primary)
		primary.Agree(first)
		now, _ := primary.Syncs()
		require.Equal(t, full, now, "it was sent what it had missed only")
		require.Equal(t, allAnswers(t, c), allAnswers(t, r))

		answers := func(c *inproc.Client) (all []string) {
			for _, key := range []string{"k", "more1", "exempt", "boosted", "blocked7", "over4"} {
				all = append(all, strings.Join(strings.SplitN(c.Do("RL.USE", "api", key, "15"), "\r\n", 5)[:4], " "))
			}
			return all
		}
		require.Contains(t, r.Say("RL.EXPLAIN edge 10.0.0.9"), `for "10.0.0.9" of network 10.0.0.0/24 is allowed: override "10.0.0.0/8" applies`)
		want := allAnswers(t, c)
		first.Promote()
		require.Equal(t, want, allAnswers(t, r))
		require.Equal(t, answers(c), answers(r))
		r.Set("RL.POLICY SET own LIMITS TB 1 1 1")
		require.NoError(t, first.Stop())
		first.Restart()
		again := first.Dial()
		require.Equal(t, want[:13], allAnswers(t, again)[:13])
		require.Equal(t, inproc.Array(inproc.Bulk("api"), inproc.Bulk("edge"), inproc.Bulk("harsh"), inproc.Bulk("own"), inproc.Bulk("quiet"), inproc.Bulk("shared"), inproc.Bulk("tried")), again.Say("RL.POLICY LIST"))
	})
}

// TestPoliciesDuringAHandover: the changes that the primary accepted before a handover are in
// force on the new primary. The old one refuses later changes, and the new one accepts them.
func TestPoliciesDuringAHandover(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		a, b := w.Start(), w.Start()
		b.Follow(a)
		ca := a.Dial()
		ca.Set(hour)
		for i := range 100 {
			ca.Set(fmt.Sprintf("RL.OVERRIDE SET api k%d LIMITS SW %d 3600 FIXED", i, 100+i))
		}
		a.HandOver(b)
		cb := b.Dial()
		for i := range 100 {
			require.Contains(t, cb.Say(fmt.Sprintf("RL.USE api k%d 0", i)), fmt.Sprintf("*5\r\n:0\r\n:%d\r\n", 100+i))
		}
		require.Contains(t, ca.Say("RL.BLOCK api k EX 9"), "-READONLY")
		cb.Set("RL.BLOCK api k1 EX 1000")
		a.AwaitLink(b)
		b.Agree(a)
		require.Contains(t, ca.Say("RL.EXPLAIN api k1"), inproc.Bulk("block"))
	})
}

// TestPolicyFileOfAReplica: a replica checks its policy file, and applies it once it is promoted.
func TestPolicyFileOfAReplica(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		file := filepath.Join(t.TempDir(), "policies.yaml")
		require.NoError(t, os.WriteFile(file, []byte("policies:\n  own:\n    limits: [SW 33 3600 FIXED]\n"), 0o600))
		primary := w.Start()
		c := primary.Dial()
		c.Set(hour)
		replica := w.Start("--policy-file", file)
		r := replica.Dial()
		w.Settle()
		require.Equal(t, inproc.Array(inproc.Bulk("own")), r.Say("RL.POLICY LIST"), "the file is in force")
		replica.Follow(primary)
		primary.Agree(replica)
		require.Equal(t, inproc.Array(inproc.Bulk("api")), r.Say("RL.POLICY LIST"))
		require.NoError(t, os.WriteFile(file, []byte("policies:\n  own:\n    limits: [SW 44 3600 FIXED]\n"), 0o600))
		require.NoError(t, replica.Reload("a test"))
		require.Equal(t, inproc.Array(inproc.Bulk("api")), r.Say("RL.POLICY LIST"))
		require.NoError(t, os.WriteFile(file, []byte("nonsense\n"), 0o600))
		require.Error(t, replica.Reload("a test"))
		replica.Promote()
		w.Settle()
		require.Contains(t, r.Say("RL.USE own k"), "*5\r\n:0\r\n:44\r\n:43\r\n", "the file is in force again")
		require.Contains(t, r.Say("RL.USE api k"), "*5\r\n:0\r\n:10\r\n:9\r\n", "what commands had set stays")
		require.Contains(t, r.Say("RL.POLICY SET own LIMITS TB 1 1 1"), file)
		w.Settle()
		require.Contains(t, replica.Log.String(), "the policy file is in force")
	})
}

// TestPolicyFileOfAServerThatWasAReplicaForAWhile: a server that is a primary again applies its
// policy file again, also if the primary in between had other policies.
func TestPolicyFileOfAServerThatWasAReplicaForAWhile(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		file := newPolicyFile(t, goodPolicies)
		a, b := w.Start("--policy-file", file.path), w.Start()
		ca, cb := a.Dial(), b.Dial()
		limited := func(c *inproc.Client, n int) bool {
			return strings.Contains(c.Say("RL.USE api k 0"), fmt.Sprintf("*5\r\n:0\r\n:%d\r\n", n))
		}
		w.Settle()
		require.True(t, limited(ca, 10), "the file is in force")
		b.Follow(a)
		a.HandOver(b)
		require.True(t, limited(cb, 10))
		cb.Set("RL.POLICY SET api LIMITS SW 99 3600 FIXED")
		require.Equal(t, ":1\r\n", cb.Say("RL.POLICY DEL quiet"))
		a.AwaitLink(b)
		b.Agree(a)
		b.HandOver(a)
		w.Settle()
		require.True(t, limited(ca, 10), "the file is in force again")
		require.Equal(t, inproc.Array(inproc.Bulk("api"), inproc.Bulk("quiet")), ca.Say("RL.POLICY LIST"))
	})
}

// TestARedisThatFollowsGetsNoPolicies: a Redis that replicates from this server gets the keys of
// clients, and nothing of the database with the policies.
func TestARedisThatFollowsGetsNoPolicies(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		primary := w.Start("--databases", "16")
		c := primary.Dial()
		allEntries(t, c)
		c.Set("SET before 1")
		redis := primary.Dial()
		require.Equal(t, "+PONG\r\n", redis.Say("PING"))
		redis.Set("REPLCONF listening-port 1", "REPLCONF capa eof capa psync2")
		redis.Command("PSYNC", "?", "-1")
		var sent bytes.Buffer
		until := func(what string, times int) {
			t.Helper()
			room := make([]byte, 4096)
			for bytes.Count(sent.Bytes(), []byte(what)) < times {
				n, err := redis.R.Read(room)
				require.NoError(t, err, "%q", sent.String())
				sent.Write(room[:n])
			}
		}
		until("$EOF:", 1)
		until("\r\nREDIS", 1)
		_, mark, _ := strings.Cut(sent.String(), "$EOF:")
		until(mark[:40], 2)
		require.Contains(t, sent.String(), "before")
		redis.Send("REPLCONF ACK 0\r\n")
		allEntries(t, c)
		require.Contains(t, c.Say("RL.USE api k"), "*5\r\n:0\r\n")
		c.Set("RL.POLICY SET another LIMITS TB 1 1 1", "SET after 1")
		until("after", 1)
		for _, none := range []string{"main/", "override/", "boost/", "block/", "exempt/", "change/", "another", "\r\n16\r\n"} {
			require.NotContains(t, sent.String(), none)
		}
		require.Contains(t, c.Do("INFO", "replication"), "connected_slaves:1")
	})
}
