package server_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// allEntries sets one entry of each kind that lasts, and answers of allAnswers say so.
func allEntries(c *client) {
	c.t.Helper()
	c.set(hour,
		"RL.POLICY SET tried COMMENT gold LIMITS TB 5 1 3600 SW 9 3600 FIXED", "RL.POLICY TRY tried LIMITS TB 7 1 3600",
		"RL.POLICY SET quiet SHADOW LIMITS SW 1 3600 FIXED",
		"RL.OVERRIDE SET api over* EX 100000 LIMITS SW 77 3600 FIXED", "RL.BOOST api boosted 2.5 EX 100000",
		"RL.BLOCK api blocked* EX 100000 REASON abuse", "RL.EXEMPT api exempt EX 100000",
		"RL.POLICY SET gone LIMITS TB 5 1 3600", "RL.BLOCK api gone EX 100000")
	require.Equal(c.t, ":1\r\n", c.say("RL.POLICY DEL gone"))
	require.Equal(c.t, ":1\r\n", c.say("RL.UNBLOCK api gone"))
}

// allAnswers is what a server says of what allEntries has set, without times.
func allAnswers(c *client) (all []string) {
	c.t.Helper()
	for _, key := range []string{"k", "over1", "boosted", "blocked1", "exempt", "gone"} {
		_, answer, found := strings.Cut(c.do("RL.EXPLAIN", "api", key, "1000"), bulk("answer"))
		require.True(c.t, found)
		all = append(all, strings.Join(strings.SplitN(answer, "\r\n", 5)[:3], " "))
	}
	for _, name := range []string{"tried", "quiet"} {
		all = append(all, c.do("RL.POLICY", "GET", name))
	}
	return append(all, c.say("RL.POLICY LIST"), c.say("RL.POLICY DUMP"), c.say("RL.CHANGES COUNT 100"), c.say("RL.EXPLAIN gone k"))
}

// changing are the commands that change policies, as a replica or a user may not.
var changing = []string{
	"RL.POLICY SET api LIMITS TB 1 1 1", "RL.POLICY DEL api", "RL.POLICY TRY api OFF", "RL.POLICY TRY api LIMITS TB 1 1 1",
	"RL.POLICY APPLY policies:", "RL.POLICY RELOAD", "RL.OVERRIDE SET api k LIMITS TB 1 1 1", "RL.OVERRIDE DEL api k",
	"RL.BOOST api k 2 EX 9", "RL.UNBOOST api k", "RL.BLOCK api k EX 9", "RL.UNBLOCK api k", "RL.EXEMPT api k EX 9", "RL.UNEXEMPT api k",
}

// TestReplicasHavePolicies: a replica has what there was when it came, what came later, and what
// came while its link was cut. It changes nothing itself, and enforces all of it once it is
// promoted, as does a server that is started again with its files.
func TestReplicasHavePolicies(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		primary, dir := startStandby(t, kind), t.TempDir()
		c := primary.dial()
		allEntries(c)
		first := startIn(t, kind, dir, "127.0.0.1:0")
		first.dial().set("RL.POLICY SET own LIMITS TB 1 1 1", "RL.BLOCK own * EX 1000")
		first.follows(primary)
		agree(t, primary, first)
		r := first.dial()
		require.Equal(t, allAnswers(c), allAnswers(r))
		require.Contains(t, r.say("RL.EXPLAIN own k"), "-NOPOLICY")
		for _, words := range changing {
			require.Contains(t, r.say(words), "-READONLY", words)
		}
		require.Contains(t, r.say("RL.USE api k"), "-READONLY")

		c.set("RL.POLICY SET api LIMITS SW 20 3600 FIXED", "RL.OVERRIDE SET api k LIMITS SW 44 3600 FIXED")
		agree(t, primary, first)
		require.Equal(t, allAnswers(c), allAnswers(r))
		full := primary.syncs()[0]
		require.Equal(t, ":1\r\n", c.do("CLIENT", "KILL", "TYPE", "replica"))
		c.set("RL.BOOST api k 2 EX 100000", "RL.BLOCK api more* EX 100000")
		require.Equal(t, ":1\r\n", c.say("RL.UNEXEMPT api exempt"))
		first.awaitLink(primary)
		agree(t, primary, first)
		require.Equal(t, full, primary.syncs()[0], "it was sent what it had missed only")
		require.Equal(t, allAnswers(c), allAnswers(r))

		answers := func(c *client) (all []string) {
			for _, key := range []string{"k", "more1", "exempt", "boosted", "blocked7", "over4"} {
				all = append(all, strings.Join(strings.SplitN(c.do("RL.USE", "api", key, "15"), "\r\n", 5)[:4], " "))
			}
			return all
		}
		want := allAnswers(c)
		require.Equal(t, okReply, r.say("REPLICAOF NO ONE"))
		eventually(t, "it is a primary", func() bool { return strings.Contains(r.do("ROLE"), "master") })
		require.Equal(t, want, allAnswers(r))
		require.Equal(t, answers(c), answers(r))
		r.set("RL.POLICY SET own LIMITS TB 1 1 1")
		first.end()
		again := startIn(t, kind, dir, "127.0.0.1:0").dial()
		require.Equal(t, want[:8], allAnswers(again)[:8])
		require.Equal(t, array(bulk("api"), bulk("own"), bulk("quiet"), bulk("tried")), again.say("RL.POLICY LIST"))
	})
}

// TestPoliciesDuringAHandover: what the primary was told before it handed over is in force on
// the new one, and what the old one refuses then happens on the other.
func TestPoliciesDuringAHandover(t *testing.T) {
	a, b := startStandby(t, "auto"), startStandby(t, "auto")
	b.follows(a)
	ca := a.dial()
	ca.set(hour)
	for i := range 100 {
		ca.set(fmt.Sprintf("RL.OVERRIDE SET api k%d LIMITS SW %d 3600 FIXED", i, 100+i))
	}
	handOver(t, a, b)
	cb := b.dial()
	for i := range 100 {
		require.Contains(t, cb.say(fmt.Sprintf("RL.USE api k%d 0", i)), fmt.Sprintf("*5\r\n:0\r\n:%d\r\n", 100+i))
	}
	require.Contains(t, ca.say("RL.BLOCK api k EX 9"), "-READONLY")
	cb.set("RL.BLOCK api k1 EX 1000")
	a.awaitLink(b)
	agree(t, b, a)
	require.Contains(t, ca.say("RL.EXPLAIN api k1"), bulk("block"))
}

// TestPolicyFileOfAReplica: it is checked, and comes into force once the replica is promoted.
func TestPolicyFileOfAReplica(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policies.yaml")
	require.NoError(t, os.WriteFile(file, []byte("policies:\n  own:\n    limits: [SW 33 3600 FIXED]\n"), 0o600))
	primary := startStandby(t, "auto")
	c := primary.dial()
	c.set(hour)
	replica := startStandby(t, "auto", "--policy-file", file)
	r := replica.dial()
	eventually(t, "the file is in force", func() bool { return r.say("RL.POLICY LIST") == array(bulk("own")) })
	replica.follows(primary)
	agree(t, primary, replica)
	require.Equal(t, array(bulk("api")), r.say("RL.POLICY LIST"))
	require.NoError(t, os.WriteFile(file, []byte("policies:\n  own:\n    limits: [SW 44 3600 FIXED]\n"), 0o600))
	require.NoError(t, replica.Reload("a test"))
	require.Equal(t, array(bulk("api")), r.say("RL.POLICY LIST"))
	require.NoError(t, os.WriteFile(file, []byte("nonsense\n"), 0o600))
	require.Error(t, replica.Reload("a test"))
	require.Equal(t, okReply, r.say("REPLICAOF NO ONE"))
	eventually(t, "the file is in force again", func() bool { return strings.Contains(r.say("RL.USE own k"), "*5\r\n:0\r\n:44\r\n:43\r\n") })
	require.Contains(t, r.say("RL.USE api k"), "*5\r\n:0\r\n:10\r\n:9\r\n", "what commands had set stays")
	require.Contains(t, r.say("RL.POLICY SET own LIMITS TB 1 1 1"), file)
	eventually(t, "it says so", func() bool { return strings.Contains(replica.log.String(), "the policy file is in force") })
}

// TestPolicyFileOfAServerThatWasAReplicaForAWhile: what its file defines is in force again once
// it is a primary, also if the primary in between had something else.
func TestPolicyFileOfAServerThatWasAReplicaForAWhile(t *testing.T) {
	file := newPolicyFile(t, goodPolicies)
	a, b := startStandby(t, "auto", "--policy-file", file.path), startStandby(t, "auto")
	ca, cb := a.dial(), b.dial()
	limited := func(c *client, n int) bool {
		return strings.Contains(c.say("RL.USE api k 0"), fmt.Sprintf("*5\r\n:0\r\n:%d\r\n", n))
	}
	eventually(t, "the file is in force", func() bool { return limited(ca, 10) })
	b.follows(a)
	handOver(t, a, b)
	require.True(t, limited(cb, 10))
	cb.set("RL.POLICY SET api LIMITS SW 99 3600 FIXED")
	require.Equal(t, ":1\r\n", cb.say("RL.POLICY DEL quiet"))
	a.awaitLink(b)
	agree(t, b, a)
	handOver(t, b, a)
	eventually(t, "the file is in force again", func() bool { return limited(ca, 10) })
	require.Equal(t, array(bulk("api"), bulk("quiet")), ca.say("RL.POLICY LIST"))
}

// TestARedisThatFollowsGetsNoPolicies: it is sent the keys of clients, whole and as they change,
// and nothing of the database that it does not have.
func TestARedisThatFollowsGetsNoPolicies(t *testing.T) {
	primary := startStandby(t, "auto", "--databases", "16")
	c := primary.dial()
	allEntries(c)
	c.set("SET before 1")
	redis := primary.dial()
	require.Equal(t, "+PONG\r\n", redis.say("PING"))
	redis.set("REPLCONF listening-port 1", "REPLCONF capa eof capa psync2")
	redis.command("PSYNC", "?", "-1")
	var sent bytes.Buffer
	until := func(what string, times int) {
		t.Helper()
		room := make([]byte, 4096)
		for bytes.Count(sent.Bytes(), []byte(what)) < times {
			n, err := redis.r.Read(room)
			require.NoError(t, err, "%q", sent.String())
			sent.Write(room[:n])
		}
	}
	until("$EOF:", 1)
	until("\r\nREDIS", 1)
	_, mark, _ := strings.Cut(sent.String(), "$EOF:")
	until(mark[:40], 2)
	require.Contains(t, sent.String(), "before")
	redis.send("REPLCONF ACK 0\r\n")
	allEntries(c)
	require.Contains(t, c.say("RL.USE api k"), "*5\r\n:0\r\n")
	c.set("RL.POLICY SET another LIMITS TB 1 1 1", "SET after 1")
	until("after", 1)
	for _, none := range []string{"main/", "override/", "boost/", "block/", "exempt/", "change/", "another", "\r\n16\r\n"} {
		require.NotContains(t, sent.String(), none)
	}
	require.Contains(t, c.do("INFO", "replication"), "connected_slaves:1")
}
