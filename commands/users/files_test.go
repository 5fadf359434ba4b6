package users_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/server"
)

const goodUsers = "user default on nopass +@all ~* &*\nuser app on >p +get +subscribe ~a* &*\n"

// written writes a file and returns its path.
func written(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// TestUserFiles: a file of users is loaded as a whole or not at all, and ACL SAVE writes a file
// that loads to the same users.
func TestUserFiles(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		dir := t.TempDir()
		path := filepath.Join(dir, "users.acl")
		write := func(lines ...string) {
			require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
		}
		write("user default on nopass +@all ~* &*", "user app on >p +get ~*")
		f := w.Start("--aclfile", path, "--requirepass", "ignored")
		admin, c := f.Dial(), f.Dial()
		require.Equal(t, "+OK\r\n", c.Do("AUTH", "app", "p"))
		write("user default on nopass +@all ~* &*", "user app on >p +foo", "user b (")
		require.Equal(t, "-ERR "+path+":2: Error in applying operation '+foo': Unknown command or category name in ACL. "+path+":3: Unmatched parenthesis in selector definition. "+
			"WARNING: ACL errors detected, no change to the previously active ACL rules was performed\r\n", admin.Do("ACL", "LOAD"))
		require.Equal(t, "$-1\r\n", c.Do("GET", "a"))
		write("user default on nopass +@all ~* &*", "user app on >p +set ~*")
		require.Equal(t, "+OK\r\n", admin.Do("ACL", "LOAD"))
		c.ExpectEnd()
		require.Equal(t, "+OK\r\n", admin.Do("ACL", "SETUSER", "new", "on", ">q"))
		require.Equal(t, "+OK\r\n", admin.Do("ACL", "SAVE"))
		saved, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, 3, strings.Count(string(saved), "\n"))
		require.Contains(t, string(saved), "user new on sanitize-payload #")
		require.Equal(t, "+OK\r\n", admin.Do("ACL", "LOAD"), "what was saved changes nothing")
		require.Equal(t, "+PONG\r\n", admin.Do("PING"))
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, left, 1)

		require.Contains(t, w.Start().Dial().Do("ACL", "LOAD"), "-ERR This Redis instance is not configured to use an ACL file.")
		for content, why := range map[string]string{
			"user app on +foo": ":1: Error in applying operation '+foo': Unknown command or category name in ACL",
			"usr app":          ":1 should start with user keyword",
		} {
			write(content)
			err = w.Node(nil, "--aclfile", path).Run()
			require.ErrorContains(t, err, path+why)
		}
		write("user default on nopass +@all ~* &*")
		err = w.Node(nil, "--aclfile", path, "--bind", "0.0.0.0").Run()
		require.ErrorContains(t, err, "lets other machines in without a password")
		err = w.Node(nil, "--aclfile", path+".missing").Run()
		require.ErrorContains(t, err, "reading the users")
	})
}

// TestFilesOfUsersThatLetNobodyInAreTaken: a file in which the default user cannot log in, or may
// not call anything, is accepted although other machines can reach the server, whether the user
// has a password or not. The log has a warning if no user can log in.
func TestFilesOfUsersThatLetNobodyInAreTaken(t *testing.T) {
	const app = "user app on >p ~* +@all\n"
	for users, want := range map[string]struct{ taken, warned bool }{
		"user default off nopass":                    {true, true},
		"user default off":                           {true, true},
		"user default off nopass ~* &* +@all":        {true, true},
		"user default on nopass -@all":               {true, true},
		"user default on nopass +@all -@all":         {true, true},
		"user default on ~* +@all":                   {true, true},
		"user default off nopass\nuser app on +@all": {true, true},
		"user default off nopass\n" + app:            {true, false},
		"user default on nopass -@all\n" + app:       {true, false},
		"user default on >secret ~* &* +@all":        {true, false},
		"user default on nopass +ping":               {false, false},
		"user default on nopass -@all +select|0":     {false, false},
		"user default on nopass -@all (+get ~a)":     {false, false},
		"user default on nopass ~* &* +@all":         {false, false},
		"user app on >p ~* +@all":                    {false, false}, // default is as without a file
	} {
		path := written(t, users)
		for _, args := range [][]string{{"--aclfile", path}, {path}} {
			c, err := config.Load(append(args, "--bind", "0.0.0.0"), nil)
			require.NoError(t, err)
			if err = server.Check(c); !want.taken {
				require.ErrorContains(t, err, "lets other machines in without a password", users)
				continue
			}
			require.NoError(t, err, users)
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				require.Equal(t, want.warned, strings.Contains(w.Start(args...).Log.String(), "no user can log in and run commands"), users)
			})
		}
	}
}

// TestLongFilesOfFaultsEndInHowManyMoreThereAre: the error of ACL LOAD is one complete line in
// the form of Redis, which ends with the number of further errors.
func TestLongFilesOfFaultsEndInHowManyMoreThereAre(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		path := filepath.Join(t.TempDir(), "users.acl")
		require.NoError(t, os.WriteFile(path, []byte(goodUsers), 0o600))
		c := w.Start("--aclfile", path).Dial()
		const ending = "WARNING: ACL errors detected, no change to the previously active ACL rules was performed\r\n"
		for _, n := range []int{2, 90, 100, 101, 2000} {
			require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("user\n", n)), 0o600))
			for call, separator := range map[string]string{"ACL LOAD": ". ", "CONFIG RELOAD": "; "} {
				got := c.Do(strings.Fields(call)...)
				require.Less(t, len(got), 10<<10)
				if call == "ACL LOAD" {
					require.True(t, strings.HasSuffix(got, separator+ending), "%q", got)
				}
				told, more := strings.Count(got, " should start with user keyword followed by the username"), 0
				if at := strings.Index(got, " more fault"); at >= 0 {
					_, err := fmt.Sscan(got[strings.LastIndexByte(got[:at], ' ')+1:at], &more)
					require.NoError(t, err)
				}
				require.Equal(t, n, told+more, "%q", got)
			}
		}
		require.NoError(t, os.WriteFile(path, []byte("user a\x01\x1b on\nuser a\x01\x1b on\nuser "+strings.Repeat("b", 1<<20)+" on on\nuser "+strings.Repeat("b", 1<<20)+" on\n"), 0o600))
		require.Equal(t, "-ERR WARNING: Duplicate user 'a  ' found on line 2. WARNING: Duplicate user '"+strings.Repeat("b", 128)+"' found on line 4. "+ending, c.Do("ACL", "LOAD"))
	})
}

// slowUserFile is a file of users on a slow disk.
type slowUserFile struct{ came, answer chan struct{} }

func (f slowUserFile) Load(*acl.Users) ([]*acl.User, error) {
	f.came <- struct{}{}
	<-f.answer
	return nil, nil
}

func (f slowUserFile) Save(us *acl.Users) error {
	_, err := f.Load(us)
	return err
}

// TestNobodyWaitsForTheDiskOfUsers: while ACL LOAD or ACL SAVE waits for the disk, no other
// client waits, also not for a command that stops the world.
func TestNobodyWaitsForTheDiskOfUsers(t *testing.T) {
	for _, call := range []string{"LOAD", "SAVE"} {
		inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
			file := slowUserFile{make(chan struct{}), make(chan struct{})}
			f := w.Start()
			f.Engine().Options.UserFile = file
			admin, other := f.Dial(), f.Dial()
			admin.Command("ACL", call)
			<-file.came
			const loop = "local n = 0 while n < 1 do n = n + 1 end return redis.call('SET', KEYS[1], n)"
			require.Equal(t, inproc.OK, other.Do("EVAL", loop, "1", "k"))
			require.Equal(t, inproc.Bulk("1"), other.Do("GET", "k"))
			admin.Silent()
			close(file.answer)
			admin.Expect(inproc.OK)
		})
	}
}
