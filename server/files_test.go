//go:build unix

package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/server"
)

// TestFilesOfOptionsThatAreNone: a start refuses a FIFO or a device in place of a file. So does
// each command that reads or replaces the file, and other clients are served meanwhile.
func TestFilesOfOptionsThatAreNone(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	fifo := func(name string) {
		require.NoError(t, os.RemoveAll(path(name)))
		require.NoError(t, syscall.Mkfifo(path(name), 0o600))
	}
	for name, text := range map[string]string{
		"main": "include " + path("part") + "\n", "part": "timeout 0\n", "users": "user default on nopass +@all ~* &*\n",
		"policies": "policies:\n  api:\n    limits: [SW 10 3600]\n",
	} {
		require.NoError(t, os.WriteFile(path(name), []byte(text), 0o600))
	}
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.Start(path("main"), "--aclfile", path("users"), "--policy-file", path("policies"))
		tls := w.StartTLS().Dial()
		c, other := s.Dial(), s.Dial()
		for _, name := range []string{"users", "policies", "part"} {
			fifo(name)
		}
		refused := func(c *inproc.Client, call ...string) {
			t.Helper()
			reply := c.Do(call...)
			require.True(t, strings.HasPrefix(reply, "-"), reply)
			require.Contains(t, reply, "not a regular file", call)
			require.Equal(t, ":0\r\n", other.Do("EXISTS", "k"))
		}
		refused(c, "ACL", "LOAD")
		refused(c, "RL.POLICY", "RELOAD")
		refused(c, "CONFIG", "RELOAD")
		fifo("main")
		refused(c, "CONFIG", "REWRITE")
		require.Contains(t, c.Do("ACL", "SAVE"), "-ERR There was an error trying to save the ACLs.")
		require.Equal(t, inproc.OK, c.Do("RL.BLOCK", "api", "k", "EX", "60"), "changes of policies go on")
		for _, file := range []string{"/dev/ptmx", "/dev/zero", path("main")} {
			for _, option := range []string{"tls-cert-file", "tls-key-file", "tls-ca-cert-file"} {
				refused(tls, "CONFIG", "SET", option, file)
			}
		}
		for _, call := range []string{"CONFIG SET tls-cert-file /dev/zero", "ACL LOAD"} {
			require.Equal(t, inproc.OK, tls.Do("MULTI"))
			if reply := tls.Say(call); reply == "+QUEUED\r\n" {
				require.Contains(t, tls.Do("EXEC"), "not allowed in transactions", call)
			} else {
				require.Contains(t, reply, "-ERR Command not allowed inside a transaction", call)
				require.Contains(t, tls.Do("EXEC"), "-EXECABORT")
			}
		}
		require.Equal(t, inproc.OK, tls.Do("CONFIG", "SET", "timeout", "0"))
	})
	for _, option := range []string{"--aclfile", "--policy-file"} {
		fifo("main")
		c, err := config.Load([]string{option, path("main")}, nil)
		require.NoError(t, err)
		require.ErrorContains(t, server.Check(c), "not a regular file", option)
	}
	_, err := config.Load([]string{path("main")}, nil)
	require.ErrorContains(t, err, "not a regular file")
}
