package commands_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/internal/inproc"
)

// TestAuditLines: a line has the client, its action, and whether it was refused, and never a key,
// a value or a password.
func TestAuditLines(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start("--requirepass", "canary1")
		c := f.Dial()
		c.Do("AUTH", "wrongcanary")
		c.Do("AUTH", "canaryuser", "canary1")
		c.Do("HELLO", "3", "AUTH", "default", "canary2")
		require.Equal(t, "+OK\r\n", c.Do("AUTH", "canary1"))
		id := c.ID()
		c.Do("SET", "canarykey", "canaryvalue")
		c.Do("CONFIG", "SET", "Requirepass", "canary3", "timeout", "100")
		c.Do("CONFIG", "SET", "canaryname", "canary")
		c.Do("SELECT", "5")
		c.Do("FLUSHDB")
		c.Do("FLUSHALL", "canary")
		c.Do("FLUSHALL")
		c.Do("MULTI")
		c.Do("FLUSHDB", "SYNC")
		c.Do("EXEC")
		c.Do("EVAL", "return redis.call('FLUSHALL')", "0")
		c.Do("SCRIPT", "KILL")
		c.Do("SCRIPT", "FLUSH")
		c.Do("SHUTDOWN", "ABORT")
		c.Send("SHUTDOWN NOSAVE\r\n")
		c.ExpectEnd()
		require.NoError(t, f.Stop())
		log := f.Log.String()
		who := "client=" + c.LocalAddr().String() + " id=" + id
		for line, times := range map[string]int{
			`msg="audit: failed AUTH" ` + who + " tried=default\n":                                  2,
			`msg="audit: failed AUTH" ` + who + " tried=\"(no such user)\"\n":                       1,
			`msg="audit: CONFIG SET" ` + who + ` user=default options="requirepass timeout"` + "\n": 1,
			`msg="audit: CONFIG SET" ` + who + ` user=default options=? refused=true` + "\n":        1,
			`msg="audit: FLUSHDB" ` + who + " user=default db=5\n":                                  2,
			`msg="audit: FLUSHALL" ` + who + " user=default refused=true\n":                         1,
			`msg="audit: FLUSHALL" ` + who + " user=default\n":                                      2,
			`msg="audit: SCRIPT KILL" ` + who + " user=default refused=true\n":                      1,
			`msg="audit: SCRIPT FLUSH" ` + who + " user=default\n":                                  1,
			`msg="audit: SHUTDOWN" ` + who + " user=default refused=true\n":                         1,
			`msg="audit: SHUTDOWN" ` + who + " user=default\n":                                      1,
		} {
			require.Equal(t, times, strings.Count(log, line), "%s\n%s", line, log)
		}
		require.NotContains(t, log, "canary")
	})
}

// onlyLook are commands for administrators that change nothing for other clients.
var onlyLook = []string{
	"acl|", "client|list", "client|no-evict", "client|unblock", "config|get", "config|rewrite", "info", "keys", "lastsave", "latency|",
	"role", "slowlog|", "rl.top", "rl.report|", "monitor", "debug", "sort", "sync", "psync", "replconf",
}

// TestEveryAdminCommandIsAudited: each command for administrators is audited unless it only
// reads. This covers future commands.
func TestEveryAdminCommandIsAudited(t *testing.T) {
	audited := 0
	for _, cmd := range commands.NewTable().All() {
		if cmd.Flags&command.FlagAudit != 0 {
			audited++
			require.NotContains(t, strings.Join(cmd.Flags.Names(), " "), "audit", "COMMAND shows what Redis shows")
			continue
		}
		if cmd.Sub != nil || strings.HasSuffix(cmd.Name, "|help") || cmd.Flags&command.FlagAdmin == 0 && cmd.AllCategories()&command.CatDangerous == 0 {
			continue
		}
		require.True(t, slices.ContainsFunc(onlyLook, func(name string) bool {
			return cmd.Name == name || strings.HasSuffix(name, "|") && strings.HasPrefix(cmd.Name, name)
		}), "%s changes something for everybody and leaves no line in the log: give it FlagAudit", cmd.Name)
	}
	require.GreaterOrEqual(t, audited, 10)
}

// TestAuditLineIsShortWhateverIsNamed: a CONFIG SET with thousands of options makes a short line,
// and does not look up each option.
func TestAuditLineIsShortWhateverIsNamed(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start()
		words := []string{"CONFIG", "SET"}
		for range 20_000 {
			words = append(words, "bogus", "1")
		}
		require.Contains(t, f.Dial().Do(words...), "-ERR")
		require.Contains(t, f.Log.String(), "audit: CONFIG SET")
		require.Less(t, len(f.Log.String()), 4000)
	})
}
