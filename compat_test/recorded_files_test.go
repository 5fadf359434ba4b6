package compat_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/persistence"
)

// recordedFiles are the files of servers of earlier builds, which scripts/record-files.sh has made,
// by folder. A change of a format adds the build before it.
var recordedFiles = map[string]struct {
	policies bool // the build has them
	dataSet  bool // the manifest names one
}{
	"2026-11-22-a1b740a2": {},
	"2026-11-26-192925e9": {policies: true},
	"2026-11-27-ee2e3af7": {policies: true, dataSet: true},
}

const noValue = "$-1\r\n"

// recordedState is what a server answers that starts with such files. Periods are so long that what
// remains does not depend on when that is.
var recordedState = [][2]string{ // call, reply or the beginning of it
	{"GET string", inproc.Bulk("a value")},
	{"GET gone", noValue},
	{"HGETALL hash", inproc.Array(inproc.Bulk("f2"), inproc.Bulk("v2"), inproc.Bulk("f3"), inproc.Bulk("v3"))},
	{"ZRANGE zset 0 -1 WITHSCORES", inproc.Array(inproc.Bulk("b"), inproc.Bulk("2.5"), inproc.Bulk("c"), inproc.Bulk("9"))},
	{"LRANGE list 0 -1", inproc.Array(inproc.Bulk("z"), inproc.Bulk("a"), inproc.Bulk("b"))},
	{"SMISMEMBER set a b c d", "*4\r\n:0\r\n:1\r\n:1\r\n:1\r\n"},
	{"CL.THROTTLE cl 15 30 100000000 0", "*5\r\n:0\r\n:16\r\n:8\r\n"},
	{"SW.ALLOW counter 10 100000000 PEEK", "*5\r\n:0\r\n:10\r\n:5\r\n"},
	{"SW.ALLOW fixed 10 100000000 FIXED PEEK", "*5\r\n:0\r\n:10\r\n:5\r\n"},
	{"SW.ALLOW log 10 100000000 LOG PEEK", "*5\r\n:0\r\n:10\r\n:5\r\n"},
	{"SW.ALLOW buckets 10 100000000 BUCKETS 10 PEEK", "*5\r\n:0\r\n:10\r\n:5\r\n"},
	{"TB.ACQUIRE greedy 10 1 100000000 PEEK", "*5\r\n:0\r\n:10\r\n:5\r\n"},
	{"TB.ACQUIRE interval 10 1 100000000 INTERVAL PEEK", "*5\r\n:0\r\n:10\r\n:7\r\n"},
	{"TB.ACQUIRE leaky 10 1 100000000 LEAKY PEEK", "*5\r\n:0\r\n:10\r\n:8\r\n"},
	{"TYPE warmup", "+ratelimit\r\n"},
	{"CC.ACQUIRE leases 5 100000000 m3 PEEK", "*5\r\n:0\r\n:5\r\n:4\r\n"},
	{"SELECT 3", inproc.OK},
	{"DBSIZE", ":1\r\n"},
	{"SELECT 0", inproc.OK},
}

// recordedPolicies is what a server answers if the build had policies.
var recordedPolicies = [][2]string{
	{"RL.USE api alice 0", "*5\r\n:0\r\n:10\r\n:6\r\n"},
	{"RL.USE api acme-1 0", "*5\r\n:0\r\n:100\r\n:100\r\n"},
	{"RL.USE api busy 0", "*5\r\n:0\r\n:15\r\n:15\r\n"},
	{"RL.USE api bad\xff", "*5\r\n:1\r\n:10\r\n:0\r\n"},
	{"RL.USE api good 0", "*5\r\n:0\r\n:10\r\n:10\r\n"},
	{"RL.USE gone k", "-NOPOLICY"},
	{"RL.POLICY GET api", "it has \"quotes\""},
	{"RL.CHANGES", "TB 10 1 100000000"},
}

// TestRecordedFiles: this build starts with the files of earlier ones, loses nothing of them, and again
// with what it has made of them.
func TestRecordedFiles(t *testing.T) {
	folders, err := os.ReadDir("testdata/files")
	require.NoError(t, err)
	require.Len(t, folders, len(recordedFiles))
	for name, build := range recordedFiles {
		t.Run(name, func(t *testing.T) {
			from := filepath.Join("testdata", "files", name)
			disk := faultfs.New()
			to, err := filepath.Abs("appendonlydir")
			require.NoError(t, err)
			files, err := os.ReadDir(from)
			require.NoError(t, err)
			for _, f := range files {
				content, err := os.ReadFile(filepath.Join(from, f.Name()))
				require.NoError(t, err)
				disk.SetContent(filepath.Join(to, f.Name()), content)
			}
			require.NoError(t, persistence.Check(disk.Kill(), to, false, io.Discard))

			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				n := w.StartAt(limit.Instant(time.Hour), disk, "--appendonly", "yes") // long before: it goes on where they end
				for _, step := range []string{"of that build", "of the log", "of a base"} {
					holds(t, n.Dial(), recordedState, step)
					keys := ":16\r\n"
					if build.policies {
						holds(t, n.Dial(), recordedPolicies, step)
						keys = ":18\r\n"
					}
					require.Equal(t, keys, n.Dial().Do("DBSIZE"))
					require.Equal(t, build.dataSet, n.Replication()["cell_data_set"] != "")
					if step == "of the log" {
						require.Equal(t, inproc.OK, n.Dial().Do("SAVE"))
					}
					require.NoError(t, n.Stop())
					n.Restart()
				}
			})
		})
	}
}

// holds compares replies.
func holds(t *testing.T, c *inproc.Client, calls [][2]string, files string) {
	t.Helper()
	for _, call := range calls {
		got := c.Do(strings.Split(call[0], " ")...)
		require.Contains(t, got, call[1], "%s, from the files %s", call[0], files)
	}
	require.Equal(t, inproc.Bulk("12345"), c.Do("GET", "another \x00\xff key"), files)
	require.Equal(t, noValue, c.Do("GET", "in three"))
}
