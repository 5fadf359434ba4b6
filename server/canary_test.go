package server_test

import (
	"strings"
	"testing"
	"time"

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
