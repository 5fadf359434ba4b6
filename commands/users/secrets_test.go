package users_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestUsersTellNoSecrets: no password, right or wrong, is in the log, in INFO, in CLIENT LIST, in
// CONFIG or in the changes that an operator sees. The clients that have changed a user are named.
func TestUsersTellNoSecrets(t *testing.T) {
	const password = "canary-password"
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		path := filepath.Join(t.TempDir(), "users.acl")
		require.NoError(t, os.WriteFile(path, []byte("user default on nopass ~* &* +@all\nuser app on >"+password+" +@all\n"), 0o600))
		f := w.Start("--aclfile", path, "--loglevel", "debug")
		admin, c := f.Dial(), f.Dial()
		for _, call := range []string{
			"ACL SETUSER app >" + password + "2",
			"ACL SETUSER app <" + password + "3",
			"ACL SETUSER app " + password,
			"ACL SETUSER app #" + password,
			"ACL SETUSER other on ( >" + password + " )",
			"ACL SETUSER other ( +get " + password,
			"ACL DRYRUN app AUTH " + password,
			"ACL GETUSER app",
			"ACL LIST",
			"ACL SAVE",
			"ACL DELUSER other nobody",
			"ACL LOG",
			"ACL " + password + " " + password,
		} {
			admin.Do(strings.Fields(call)...)
		}
		require.Equal(t, wrongPass, c.Do("AUTH", "app", password+"4"))
		require.Equal(t, wrongPass, c.Do("AUTH", password, "app"))
		require.Equal(t, inproc.OK, c.Do("AUTH", "app", password))
		require.Equal(t, inproc.OK, c.Do("ACL", "SETUSER", "app", "<"+password+"2"))
		require.NoError(t, os.WriteFile(path, []byte("user default on nopass "+password+"\nuser app on >"+password+" +nosuch <"+password+"\n"+password+"\nuser app\n"), 0o600))
		require.Contains(t, admin.Do("ACL", "LOAD"), "ACL errors detected")
		require.Contains(t, f.Log.String(), "the users were not loaded")
		require.Contains(t, f.Log.String(), "audit: ACL SETUSER")
		require.Contains(t, f.Log.String(), "user=app\n")
		require.Regexp(t, "audit: ACL LOAD.* refused=true", f.Log.String())

		changes, loads := "", 0
		for _, change := range f.Engine().Changes.Since(0) {
			changes += change.Text + " by " + change.By + "\n"
			if strings.HasPrefix(change.Text, "ACL LOAD") {
				loads++
			}
		}
		require.Contains(t, changes, "ACL SETUSER app by app, from "+f.Host+":")
		require.Contains(t, changes, "ACL DELUSER other")
		require.Zero(t, loads, "it has changed nothing")
		shown := admin.Do("INFO", "everything") + admin.Do("CLIENT", "LIST") + admin.Do("CONFIG", "GET", "*") + changes
		require.NotContains(t, shown, password)
		require.NotContains(t, f.Log.String(), password)
	})
}
