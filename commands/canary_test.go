package commands_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestLogTellsNoSecrets: after a run in which a password, keys and values were used, guessed,
// mistyped, queued, waited for and sent as garbage, none of them is in the log, or in what INFO
// and CLIENT LIST show to other clients.
func TestLogTellsNoSecrets(t *testing.T) {
	const password, key, value, guess = "canary-password", "canary-key", "canary-value", "canary-guess"
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start("--requirepass", password, "--loglevel", "debug")
		c := f.Dial()
		require.Equal(t, "+OK\r\n", c.Do("AUTH", password))
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
			c.Do(args...)
		}
		for _, raw := range []string{
			key + " \"" + value + "\r\n", "*2\r\n$3\r\nGET\r\n$-1\r\n" + key, "POST /" + key + " HTTP/1.1\r\nHost: " + value + "\r\n\r\n",
			"*1\r\n" + password + "\r\n", strings.Repeat(value, 10_000),
		} {
			bad := f.Dial()
			_, _ = bad.Write([]byte(raw))     // the server may close the connection early
			_, _ = io.Copy(io.Discard, bad.R) // until the server closes the connection
		}
		waiting := f.Dial()
		require.Equal(t, "+OK\r\n", waiting.Do("AUTH", password))
		require.Contains(t, waiting.Do("SW.ALLOW", key+"2", "1", "60", "1", "FIXED", "ANCHOR", "FIRST"), ":0")
		waiting.Command("SW.ALLOW", key+"2", "1", "60", "1", "FIXED", "ANCHOR", "FIRST", "BLOCK", "0")
		w.Settle()
		require.Equal(t, 1, f.Keyspace().Waiting())
		w.Advance(time.Minute)
		admin := f.Dial()
		require.Equal(t, "+OK\r\n", admin.Do("AUTH", password))
		shown := admin.Do("INFO", "everything") + admin.Do("CLIENT", "LIST")
		require.NoError(t, f.Stop())

		require.Contains(t, f.Log.String(), "speaks HTTP", "the log is not empty for another reason")
		for _, secret := range []string{password, guess, value, key} {
			require.NotContains(t, f.Log.String(), secret)
			require.NotContains(t, shown, secret)
		}
	})
}

// TestPasswordsAreShownNowhere: however a password reaches the server, rightly or not, no log,
// report, list or stream of commands shows it to other clients.
func TestPasswordsAreShownNowhere(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		path := filepath.Join(t.TempDir(), "cellserver.conf")
		require.NoError(t, os.WriteFile(path, []byte("requirepass canary-file\nuser line on >canary-line +@all ~* &*\n"), 0o600))
		f := w.Start(path, "--loglevel", "debug")
		admin, other, monitor := f.Dial(), f.Dial(), f.Dial()
		require.Equal(t, inproc.OK, admin.Do("AUTH", "canary-file"))
		require.Equal(t, inproc.OK, monitor.Do("AUTH", "line", "canary-line"))
		require.Equal(t, inproc.OK, admin.Do("CONFIG", "SET", "slowlog-log-slower-than", "0", "latency-monitor-threshold", "1"))
		monitors := monitor.Do("MONITOR") == inproc.OK
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
			other.Do(args...)
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
			admin.Do(args...)
		}
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Contains(t, string(content), "canary-set", "it is where it belongs")
		for _, fault := range []string{"requirepass \"canary-quote", "user app on >canary-line2 +nosuch", "user app on (canary-line3", "user app canary-line4", "store canary-store", "maxclients canary-number"} {
			require.NoError(t, os.WriteFile(path, append(content, fault...), 0o600))
			require.Contains(t, admin.Do("CONFIG", "RELOAD"), "-ERR CONFIG RELOAD failed", fault)
		}
		var shown strings.Builder
		for _, command := range []string{
			"INFO everything", "CLIENT LIST", "ACL LIST", "ACL GETUSER default", "ACL GETUSER app", "ACL LOG", "SLOWLOG GET -1", "LATENCY LATEST", "LATENCY DOCTOR",
			"LATENCY HISTOGRAM", "RL.TOP", "RL.REPORT OVERVIEW", "RL.REPORT HISTORY", "RL.REPORT KEYS", "RL.REPORT GROUPS", "RL.REPORT CHANGES", "MEMORY STATS",
		} {
			shown.WriteString(admin.Do(strings.Fields(command)...))
		}
		if monitors {
			admin.Do("ECHO", "the-end-of-it")
			for line := ""; !strings.Contains(line, "the-end-of-it"); shown.WriteString(line) {
				line, err = monitor.R.ReadString('\n')
				require.NoError(t, err)
			}
		}
		for _, change := range f.Engine().Changes.Since(0) {
			shown.WriteString(change.Text + change.By)
		}
		require.NoError(t, f.Stop())
		require.Contains(t, f.Log.String(), "was not reloaded", "the log is not empty for another reason")
		at := max(0, strings.Index(shown.String(), "canary")-200)
		require.NotContains(t, shown.String(), "canary", "near %q", shown.String()[at:min(at+400, shown.Len())])
		require.NotContains(t, f.Log.String(), "canary")
	})
}
