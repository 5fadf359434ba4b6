package commands_test

import (
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/script"
)

// telling matches commands whose replies depend on more than keys: commands about the server or
// the connection, with random replies, that wait, or that change subscriptions. DBSIZE is among
// them, since it counts expired keys until the sweep has removed them.
var telling = regexp.MustCompile(`(?i)^(auth|p?sync|replicaof|slaveof|replconf|failover|role|quit|reset|hello|client|config|debug|info|time|monitor|shutdown|save|bg\w+|lastsave|command|memory|slowlog|latency|acl|module|[ps]?(un)?subscribe|psubscribe|ssubscribe|sunsubscribe|rl\.(top|report|changes)|\w*scan|\w*rand\w*|spop|wait\w*|script|function|object|swapdb|b[lrz]\w+)\b|block|dbsize|\$\{|while|repeat|math\.random|'TIME'|'scan'|'keys'|HELLO`)

// vocabulary returns all commands of the scripts that can be compared by themselves.
func vocabulary(t *testing.T) (lines []string) {
	files, err := script.Files("..", script.Folders...)
	require.NoError(t, err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range strings.Lines(string(content)) {
			command, ok := strings.CutPrefix(strings.TrimSpace(line), "> ")
			if ok && !telling.MatchString(command) && len(command) < 2000 {
				lines = append(lines, command)
			}
		}
	}
	return lines
}

// told sends raw and returns all replies before that of a sentinel command. The lines of each
// reply are sorted, since elements may come in any order.
func told(c *inproc.Client, raw string) (replies []string) {
	const sentinel = "$9\r\nthat's it\r\n"
	c.Send(raw + "DISCARD\r\nECHO \"that's it\"\r\n")
	for {
		r := c.Reply()
		if r == sentinel {
			return replies[:len(replies)-1] // without that of DISCARD, which depends on how it was sent
		}
		lines := strings.SplitAfter(r, "\r\n")
		slices.Sort(lines)
		replies = append(replies, strings.Join(lines, ""))
	}
}

// TestPrefetchChangesNoReply: one server gets many commands at a time and looks up their keys
// before it runs the first, and another gets the same commands one by one. The commands are of
// every kind and about the same few keys, so that a key that was looked up is often moved,
// replaced, removed, flushed or expired before its command runs.
func TestPrefetchChangesNoReply(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		lines := vocabulary(t)
		require.Greater(t, len(lines), 1500)
		rng := rand.New(rand.NewPCG(21, 22))
		many, one := w.Start(), w.Start()
		ahead, single := many.Dial(), one.Dial()
		rounds := effort.Steps(60, 400)
		for round := range rounds {
			var batch []string
			for range 2 + rng.IntN(60) {
				// Neighbouring lines of a script are about the same keys.
				at := rng.IntN(len(lines))
				batch = append(batch, lines[at:min(at+1+rng.IntN(4), len(lines))]...)
				if rng.IntN(60) == 0 {
					batch = append(batch, "FLUSHALL")
				}
			}
			got := told(ahead, strings.Join(batch, "\r\n")+"\r\n")
			var want []string
			for _, line := range batch {
				single.Send(line + "\r\n")
				r := single.Reply()
				sorted := strings.SplitAfter(r, "\r\n")
				slices.Sort(sorted)
				want = append(want, strings.Join(sorted, ""))
			}
			told(single, "")
			for i := range min(len(got), len(want)) {
				require.Equal(t, want[i], got[i], "round %d, %q", round, batch[:i+1])
			}
			require.Len(t, got, len(want))
			step := time.Duration(rng.IntN(2000)) * time.Millisecond
			w.Advance(step)
			if rng.IntN(10) == 0 {
				reset := "SELECT 0\r\nUNWATCH\r\nFLUSHALL\r\n"
				require.Equal(t, told(single, reset), told(ahead, reset))
			}
		}
	})
}
