package server_test

import (
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cellserver/cellserver/config"
	"github.com/stretchr/testify/require"
)

// TestLogTellsNoSecrets: after a run in which a password, keys and values were used,
// guessed, mistyped, queued, waited for and sent as garbage, none of them is in the log,
// nor in what INFO and CLIENT LIST show to others.
func TestLogTellsNoSecrets(t *testing.T) {
	const password, key, value, guess = "canary-password", "canary-key", "canary-value", "canary-guess"
	eachTransport(t, func(t *testing.T, kind string) {
		f := start(t, kind, "--requirepass", password, "--loglevel", "debug")
		c := f.dial()
		require.Equal(t, "+OK\r\n", c.do("AUTH", password))
		for _, args := range [][]string{
			{"CL.THROTTLE", key, "5", "1", "60"},
			{"CL.THROTTLE", key, value, "1", "60"},
			{"SW.ALLOW", key, "5", "60"},
			{"CC.ACQUIRE", "c", "5", "60", value},
			{"GET", key},
			{key, value},
			{"CLIENT", key, value},
			{"CLIENT", "SETINFO", "LIB-NAME", value + " " + value},
			{"CONFIG", "SET", "requirepass", password},
			{"CONFIG", "SET", "requirepass", password, "maxclients", value},
			{"CONFIG", "SET", key, value},
			{"ECHO", value},
			{"AUTH", guess},
			{"AUTH", key, guess},
			{"HELLO", "3", "AUTH", "default", guess},
			{"HELLO", "3", "AUTH", "default", password},
			{"RL.INFO", key},
			{"KEYS", key + "*"},
			{"WATCH", key},
			{"MULTI"},
			{"GET", key},
			{key},
			{"EXEC"},
		} {
			c.do(args...)
		}
		for _, raw := range []string{
			key + " \"" + value + "\r\n", "*2\r\n$3\r\nGET\r\n$-1\r\n" + key, "POST /" + key + " HTTP/1.1\r\nHost: " + value + "\r\n\r\n",
			"*1\r\n" + password + "\r\n", strings.Repeat(value, 10_000),
		} {
			bad := f.dial()
			_, _ = bad.Write([]byte(raw)) // may be cut short
			eventually(t, "it is closed", func() bool {
				_, err := bad.r.ReadByte()
				return err != nil
			})
		}
		waiting := f.dial()
		require.Equal(t, "+OK\r\n", waiting.do("AUTH", password))
		require.Contains(t, waiting.do("SW.ALLOW", key+"2", "1", "60", "1", "FIXED", "ANCHOR", "FIRST"), ":0")
		waiting.command("SW.ALLOW", key+"2", "1", "60", "1", "FIXED", "ANCHOR", "FIRST", "BLOCK", "0")
		eventually(t, "it waits", func() bool { return f.Keyspace().Waiting() == 1 })
		f.police(time.Hour)
		admin := f.dial()
		require.Equal(t, "+OK\r\n", admin.do("AUTH", password))
		shown := admin.do("INFO", "everything") + admin.do("CLIENT", "LIST")
		f.end()

		require.Contains(t, f.log.String(), "speaks HTTP", "the log is not empty for another reason")
		for _, secret := range []string{password, guess, value, key} {
			require.NotContains(t, f.log.String(), secret)
			require.NotContains(t, shown, secret)
		}
	})
}

// TestPasswordsAreShownNowhere: whatever way a password comes in, rightly or not, nothing that
// prints shows it to others: no log, report, list or stream of commands.
func TestPasswordsAreShownNowhere(t *testing.T) {
	eachTransport(t, func(t *testing.T, kind string) {
		path := writeConfig(t, "requirepass canary-file\nuser line on >canary-line +@all ~* &*\ntransport "+kind+"\n")
		c, err := config.Load([]string{path, "--loglevel", "debug"}, nil)
		require.NoError(t, err)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		f := startOn(t, c, l)
		admin, other, monitor := f.dial(), f.dial(), f.dial()
		require.Equal(t, okReply, admin.do("AUTH", "canary-file"))
		require.Equal(t, okReply, monitor.do("AUTH", "line", "canary-line"))
		require.Equal(t, okReply, admin.do("CONFIG", "SET", "slowlog-log-slower-than", "0", "latency-monitor-threshold", "1"))
		monitors := monitor.do("MONITOR") == okReply
		for _, args := range [][]string{
			{"AUTH", "canary-guess"},
			{"AUTH", "line", "canary-guess"},
			{"AUTH", "a", "canary-guess", "b"},
			{"HELLO", "3", "AUTH", "line", "canary-guess"},
			{"HELLO", "2", "AUTH", "line", "canary-line", "SETNAME", "x"},
			{"HELLO", "2", "SETNAME", "x", "AUTH", "line", "canary-line"},
			{"auth", "canary-file"},
			{"PING"},
		} {
			other.do(args...)
		}
		for _, args := range [][]string{
			{"ACL", "SETUSER", "app", "on", ">canary-user", "+get"},
			{"ACL", "SETUSER", "app", ">canary-user2", "+nosuch"},
			{"ACL", "SETUSER", "app", "(canary-user3"},
			{"acl", "setuser", "app", "<canary-user"},
			{"ACL", "SETUSER", "app", "<canary-none"},
			{"ACL", "SETUSER", "app", "canary-rule"},
			{"CONFIG", "SET", "requirepass", "canary-set"},
			{"CONFIG", "SET", "requirepass", "canary-set2", "maxclients", "x"},
			{"CONFIG", "SET", "tls-key-file-pass", "canary-key"},
			{"CONFIG", "SET", "masterauth", "canary-master"},
			{"MULTI"},
			{"AUTH", "canary-set"},
			{"ACL", "SETUSER", "app", ">canary-queued"},
			{"EXEC"},
			{"CONFIG", "REWRITE"},
		} {
			admin.do(args...)
		}
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Contains(t, string(content), "canary-set", "it is where it belongs")
		for _, fault := range []string{"requirepass \"canary-quote", "user app on >canary-line2 +nosuch", "user app on (canary-line3", "user app canary-line4", "store canary-store", "maxclients canary-number"} {
			require.NoError(t, os.WriteFile(path, append(content, fault...), 0o600))
			require.Contains(t, admin.do("CONFIG", "RELOAD"), "-ERR CONFIG RELOAD failed", fault)
		}
		var shown strings.Builder
		for _, command := range []string{
			"INFO everything", "CLIENT LIST", "ACL LIST", "ACL GETUSER default", "ACL GETUSER app", "ACL LOG", "SLOWLOG GET -1", "LATENCY LATEST", "LATENCY DOCTOR",
			"LATENCY HISTOGRAM", "RL.TOP", "RL.REPORT OVERVIEW", "RL.REPORT HISTORY", "RL.REPORT KEYS", "RL.REPORT GROUPS", "RL.REPORT CHANGES", "MEMORY STATS",
		} {
			shown.WriteString(admin.do(strings.Fields(command)...))
		}
		if monitors {
			admin.do("ECHO", "the-end-of-it")
			for line := ""; !strings.Contains(line, "the-end-of-it"); shown.WriteString(line) {
				line, err = monitor.r.ReadString('\n')
				require.NoError(t, err)
			}
		}
		for _, change := range f.Engine().Changes.Since(0) {
			shown.WriteString(change.Text + change.By)
		}
		f.end()
		require.Contains(t, f.log.String(), "was not reloaded", "the log is not empty for another reason")
		at := max(0, strings.Index(shown.String(), "canary")-200)
		require.NotContains(t, shown.String(), "canary", "near %q", shown.String()[at:min(at+400, shown.Len())])
		require.NotContains(t, f.log.String(), "canary")
	})
}
