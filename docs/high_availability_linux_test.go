//go:build real

package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shownLine is a command of a page with what it shows.
var shownLine = regexp.MustCompile(`(?m)^(redis-cli .*?) +# (.*)$`)

// setUp does what the page says until the page shows that all is well. It returns the block that
// hands over.
func (m *machines) setUp() (handOver string) {
	m.t.Helper()
	blocks := pageBlocks(m.t, availabilityPage, "sh", 3)
	m.startAll(blocks[0])
	shown := shownLine.FindAllStringSubmatch(blocks[1], -1)
	require.Len(m.t, shown, 2)
	for _, line := range shown {
		m.awaits(line[1], line[2])
	}
	// A sentinel that has not heard of the replica could not promote it.
	for _, machine := range []string{"1", "2"} {
		m.awaits("redis-cli -h 10.0.0."+machine+" -p 26379 INFO sentinel", shown[1][2])
	}
	m.awaits("redis-cli -h 10.0.0.2 -a secret INFO replication", "master_link_status:up")
	return blocks[2]
}

// TestHighAvailabilityIsSetUpAndHandsOver does what the page says: it sets up servers and
// sentinels, has each client call, and hands over. Nothing that was answered is lost, and the
// files have the new roles.
func TestHighAvailabilityIsSetUpAndHandsOver(t *testing.T) {
	m := newMachines(t)
	m.configure("", "")
	handOver := m.setUp()
	snippetsCall(t, m)

	first, second := m.client("1"), m.client("2")
	m.awaits("redis-cli -h 10.0.0.2 -a secret EXISTS user123", "1") // the replica has what the clients did
	require.ErrorContains(t, second.Incr(t.Context(), "n").Err(), "READONLY You can't write against a read only replica.")
	for range 1000 {
		require.NoError(t, first.Incr(t.Context(), "n").Err())
	}
	m.types(handOver)
	// Until then the sentinels may close connections of clients.
	m.awaits("redis-cli -h 10.0.0.3 -p 26379 INFO sentinel", "status=ok,address=10.0.0.2:6379,slaves=1,sentinels=3")
	n, err := second.Incr(t.Context(), "n").Result()
	require.NoError(t, err)
	require.Equal(t, int64(1001), n)
	require.ErrorContains(t, first.Incr(t.Context(), "n").Err(), "READONLY")
	m.awaits("redis-cli -h 10.0.0.1 -p 26379 INFO sentinel", "status=ok,address=10.0.0.2:6379,slaves=1,sentinels=3")
	m.awaits("redis-cli -h 10.0.0.1 -a secret INFO replication", "master_link_status:up")
	require.Contains(t, m.config("1"), "\nreplicaof "+network+"2 "+m.port+"\n")
	require.NotContains(t, m.config("2"), "\nreplicaof 127")
}

func (m *machines) config(machine string) string {
	m.t.Helper()
	text, err := os.ReadFile(filepath.Join(m.root, machine, "limits.conf"))
	require.NoError(m.t, err)
	return string(text)
}

// snippetsCall runs the code of the page in each language, with the sentinels of the test.
func snippetsCall(t *testing.T, m *machines) {
	t.Helper()
	page, err := os.ReadFile(availabilityPage)
	require.NoError(t, err)
	runs := map[string]runSnippet{
		"Python (redis-py)": pythonSnippet, "Java (Lettuce)": lettuceSnippet, "Node (ioredis)": ioredisSnippet, "Go (go-redis)": goSnippet,
	}
	for _, s := range pageSnippets(string(page)) {
		run := runs[s.title]
		if run == nil {
			continue // no code
		}
		delete(runs, s.title)
		t.Run(s.title, func(t *testing.T) {
			// Time goes on while a program starts, so the wait that it names is not always the same.
			command := run(t, t.TempDir(), strings.Replace(m.local(s.code), "{retry_after}", "2", 1))
			client := m.client("1")
			require.NoError(t, client.Del(t.Context(), "user123").Err())
			require.Equal(t, "admitted", runProgram(t, command, m.port))
			require.NoError(t, client.Do(t.Context(), "CL.THROTTLE", "user123", 1000, 30, 60, 1000).Err(), "for half an hour")
			require.Equal(t, "limited", runProgram(t, command, m.port))
		})
	}
	require.Empty(t, runs, "the page no longer shows what is run here")
}

// lettuceSnippet puts the interface of calling.md before the code.
func lettuceSnippet(t *testing.T, dir, code string) []string {
	calling := pageBlocks(t, "calling.md", "java", 1)[0]
	declaration, _, found := strings.Cut(calling, "\nvar client")
	require.True(t, found)
	return javaSnippet(t, dir, declaration+"\n"+code)
}

// TestHighAvailabilityUsersHaveTheRightsTheyNeed kills the primary while sentinels and replicas
// have the users of the page. The replica takes over, the old primary comes back as its replica,
// and no call was refused.
func TestHighAvailabilityUsersHaveTheRightsTheyNeed(t *testing.T) {
	m := newMachines(t)
	users := pageBlocks(t, availabilityPage, "acl", 1)[0]
	m.configure(users+"\nmasteruser replica\nmasterauth secret2\n", "sentinel auth-user limits sentinel\nsentinel auth-pass limits secret1\n")
	m.setUp()
	require.NoError(t, m.client("1").Incr(t.Context(), "n").Err())
	m.awaits("redis-cli -h 10.0.0.2 -a secret GET n", "1")
	m.kill("1", "limits")
	m.awaits("redis-cli -h 10.0.0.3 -p 26379 INFO sentinel", "address=10.0.0.2:6379")
	m.awaits("redis-cli -h 10.0.0.2 -a secret INCR n", "2")
	m.startAll(regexp.MustCompile(`(?m)^cellserver .*0\.1$`).FindString(pageBlocks(t, availabilityPage, "sh", 3)[0]))
	m.awaits("redis-cli -h 10.0.0.1 -a secret INFO replication", "master_link_status:up")
	for _, machine := range []string{"1", "2"} {
		refused, err := m.client(machine).Do(t.Context(), "ACL", "LOG").Slice()
		require.NoError(t, err)
		require.Empty(t, refused)
	}
}

// TestRestoreBesideSentinel does what the page on backups says, after Sentinel has promoted the replica
// of the server that is restored. Nothing is undone before, and then the restored state is everywhere.
func TestRestoreBesideSentinel(t *testing.T) {
	m := newMachines(t)
	m.configure("", "")
	m.setUp()
	require.NoError(t, m.client("1").Incr(t.Context(), "n").Err())
	m.types(`cp -r "$ROOT/1/appendonlydir" "$ROOT/backup"`)
	require.NoError(t, m.client("1").Incr(t.Context(), "n").Err())
	m.awaits("redis-cli -h 10.0.0.2 -a secret GET n", "2")
	m.kill("1", "limits")
	m.awaits("redis-cli -h 10.0.0.3 -p 26379 INFO sentinel", "address=10.0.0.2:6379")
	m.types(`mv "$ROOT/1/appendonlydir" "$ROOT/old"; cellserver restore "$ROOT/backup" "$ROOT/1/appendonlydir"`)
	m.startAll(regexp.MustCompile(`(?m)^cellserver .*0\.1$`).FindString(pageBlocks(t, availabilityPage, "sh", 3)[0]))
	m.awaits("redis-cli -h 10.0.0.1 -a secret INFO replication", "than the backup that this server was restored from")
	m.awaits("redis-cli -h 10.0.0.1 -a secret GET n", "1")
	m.awaits("redis-cli -h 10.0.0.2 -a secret GET n", "2")

	m.types(pageBlocks(t, "operations/backup.md", "sh", 3)[2])
	m.awaits("redis-cli -h 10.0.0.2 -a secret INFO replication", "master_link_status:up")
	m.awaits("redis-cli -h 10.0.0.2 -a secret GET n", "1")
	m.awaits("redis-cli -h 10.0.0.3 -p 26379 INFO sentinel", "status=ok,address=10.0.0.1:6379,slaves=1,sentinels=3")
	n, err := m.client("1").Incr(t.Context(), "n").Result()
	require.NoError(t, err)
	require.Equal(t, int64(2), n)
}

// TestUpgradeWithAReplicaLosesNothing does what the page says, while a limit is in use.
func TestUpgradeWithAReplicaLosesNothing(t *testing.T) {
	m := newMachines(t)
	m.configure("", "")
	m.setUp()
	for range 100 {
		require.NoError(t, m.client("1").Incr(t.Context(), "n").Err())
	}
	m.types(pageBlocks(t, "operations/upgrade.md", "sh", 2)[1])
	n, err := m.client("2").Incr(t.Context(), "n").Result()
	require.NoError(t, err)
	require.Equal(t, int64(101), n)
	m.awaits("redis-cli -h 10.0.0.1 -a secret GET n", "101")
	require.ErrorContains(t, m.client("1").Incr(t.Context(), "n").Err(), "READONLY")
}
