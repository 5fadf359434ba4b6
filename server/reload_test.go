package server_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/server"
)

// reloadable is a server with a configuration file and a file of users.
type reloadable struct {
	*inproc.Node
	admin       *inproc.Client
	file, users string
}

const goodUsers = "user default on nopass +@all ~* &*\nuser app on >p +get +subscribe ~a* &*\n"

// startReloadable starts a server with that configuration and with its own file of users.
func startReloadable(t *testing.T, w *inproc.World, content string) *reloadable {
	t.Helper()
	dir := t.TempDir()
	r := &reloadable{file: filepath.Join(dir, "cellserver.conf"), users: filepath.Join(dir, "users.acl")}
	r.write(t, content, goodUsers)
	r.Node = w.Start(r.file, "--aclfile", r.users, "--timeout", "77")
	r.admin = r.Dial()
	return r
}

func (r *reloadable) write(t *testing.T, content, users string) {
	t.Helper()
	require.NoError(t, os.WriteFile(r.file, []byte(content), 0o600))
	require.NoError(t, os.WriteFile(r.users, []byte(users), 0o600))
}

// state returns everything that a reload may change, as clients see it.
func (r *reloadable) state() string {
	return r.admin.Do("CONFIG", "GET", "*") + r.admin.Do("ACL", "LIST") + fmt.Sprint(*r.Engine().Limits())
}

// TestReloadIsARestartForOptions: a reload applies the file, and options that it leaves out have
// their defaults again. Flags have precedence, as at the start.
func TestReloadIsARestartForOptions(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		r := startReloadable(t, w, "maxclients 500\nmaxmemory 1gb\n")
		require.Equal(t, inproc.OK, r.admin.Do("CONFIG", "SET", "busy-reply-threshold", "7", "maxclients", "400", "timeout", "1"))
		r.write(t, "maxclients 600\ntimeout 5\nhz 50\n", goodUsers)
		require.Equal(t, inproc.OK, r.admin.Do("config", "reload"))
		for name, want := range map[string]string{"maxclients": "600", "maxmemory": "0", "busy-reply-threshold": "5000", "timeout": "77"} {
			require.Equal(t, inproc.Array(inproc.Bulk(name), inproc.Bulk(want)), r.admin.Do("CONFIG", "GET", name))
		}
		require.Equal(t, 600, r.Engine().Limits().MaxClients)
		require.Contains(t, r.Log.String(), "the configuration was reloaded")
		changes := r.Engine().Changes.Since(0)
		require.Equal(t, "reload", changes[len(changes)-1].Kind)
		require.Contains(t, changes[len(changes)-1].By, "default, from "+r.Host+":")
	})
}

// TestReloadOfThePasswordLeavesUsersOfAFileAlone: requirepass has no effect with a file of users.
// If it were applied for a moment, the user default would need no password after its removal from
// the file, and its clients would be closed.
func TestReloadOfThePasswordLeavesUsersOfAFileAlone(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		r := startReloadable(t, w, "requirepass old\n")
		other := r.Dial()
		require.Equal(t, "+PONG\r\n", other.Do("PING"))
		for _, content := range []string{"requirepass new\n", ""} {
			r.write(t, content, goodUsers)
			require.Equal(t, inproc.OK, r.admin.Do("CONFIG", "RELOAD"))
			require.Equal(t, "+PONG\r\n", r.admin.Do("PING"))
			require.Equal(t, "+PONG\r\n", other.Do("PING"))
		}
		r.write(t, "", strings.ReplaceAll(goodUsers, "default on nopass", "default on >secret"))
		require.NoError(t, r.Reload("a test"))
		require.Equal(t, noAuth, r.Dial().Do("PING"))
	})
}

// TestReloadTakesUsers: clients of users whose permissions change are closed, and others are not.
func TestReloadTakesUsers(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		r := startReloadable(t, w, "")
		c, other := r.Dial(), r.Dial()
		require.Equal(t, inproc.OK, c.Do("AUTH", "app", "p"))
		require.Equal(t, inproc.OK, r.admin.Do("CONFIG", "RELOAD"))
		require.Equal(t, "$-1\r\n", c.Do("GET", "a"), "nothing has changed")
		r.write(t, "", strings.ReplaceAll(goodUsers, "~a*", "~b*")+"user new on nopass +ping\n")
		require.Equal(t, inproc.OK, r.admin.Do("CONFIG", "RELOAD"))
		c.ExpectEnd()
		require.Equal(t, inproc.OK, other.Do("AUTH", "new", "x"))
		require.Equal(t, "+PONG\r\n", other.Do("PING"))
	})
}

// TestReloadAnswersWhomItCloses: a caller whose user changes or is deleted gets the reply before
// its connection is closed, as with ACL LOAD and ACL DELUSER.
func TestReloadAnswersWhomItCloses(t *testing.T) {
	const root = "user root on >p +@all ~* &*\n"
	for name, left := range map[string]string{"other rules": strings.ReplaceAll(root, "~*", "~a*"), "gone": ""} {
		for _, call := range []string{"CONFIG RELOAD", "ACL LOAD", "ACL DELUSER root"} {
			t.Run(name+"/"+call, func(t *testing.T) {
				inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
					r := startReloadable(t, w, "")
					r.write(t, "", goodUsers+root)
					require.Equal(t, inproc.OK, r.admin.Do("CONFIG", "RELOAD"))
					c, other, second := r.Dial(), r.Dial(), r.Dial()
					for _, cl := range []*inproc.Client{c, second} {
						require.Equal(t, inproc.OK, cl.Do("AUTH", "root", "p"))
					}
					r.write(t, "", goodUsers+left)
					want := inproc.OK
					if strings.HasPrefix(call, "ACL DELUSER") {
						want = ":1\r\n"
					}
					c.Command(strings.Fields(call)...)
					c.Expect(want)
					c.ExpectEnd()
					second.ExpectEnd()
					require.Equal(t, "+PONG\r\n", other.Do("PING"))
				})
			})
		}
	}
}

// TestReloadOfAMissingFileTellsTheFaultsOfUsersToo: a missing file does not hide a fault of another
// one, and causes none.
func TestReloadOfAMissingFileTellsTheFaultsOfUsersToo(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		r := startReloadable(t, w, "maxclients 500\nport 7000\n")
		require.NoError(t, os.Remove(r.file))
		missing := "-ERR CONFIG RELOAD failed, nothing has changed: reading the configuration: open " + r.file + ": no such file or directory"
		require.Equal(t, missing+"\r\n", r.admin.Do("CONFIG", "RELOAD"))
		require.NoError(t, os.WriteFile(r.users, []byte("usr\n"), 0o600))
		require.Equal(t, missing+"; "+r.users+":1 should start with user keyword followed by the username\r\n", r.admin.Do("CONFIG", "RELOAD"))
		require.Contains(t, r.Log.String(), "msg=\"audit: CONFIG RELOAD\" client="+r.admin.LocalAddr().String()+" id="+r.admin.ID()+" user=default refused=true\n")
	})
}

// TestReloadTakesUserLines: user lines of the configuration define users, too, and requirepass is
// the password of default if no line defines it.
func TestReloadTakesUserLines(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		path := writeConfig(t, "requirepass one\nuser app on >p +ping\n")
		f := w.Start(path)
		admin, app := f.Dial(), f.Dial()
		require.Equal(t, noAuth, admin.Do("PING"), "requirepass counts beside users")
		require.Equal(t, inproc.OK, admin.Do("AUTH", "one"))
		require.Equal(t, inproc.OK, app.Do("AUTH", "app", "p"))
		require.NoError(t, os.WriteFile(path, []byte("requirepass one\nuser app2 on >p +ping\n"), 0o600))
		require.Equal(t, inproc.OK, admin.Do("CONFIG", "RELOAD"))
		app.ExpectEnd()
		require.Contains(t, admin.Do("ACL", "USERS"), "app2")
		require.NoError(t, os.WriteFile(path, []byte("requirepass one\n"), 0o600))
		require.Equal(t, inproc.OK, admin.Do("CONFIG", "RELOAD"))
		require.Equal(t, inproc.Array(inproc.Bulk("default")), admin.Do("ACL", "USERS"))
		require.Equal(t, noAuth, f.Dial().Do("PING"))
		require.NoError(t, os.WriteFile(path, []byte("\nuser app on\nuser bad +nosuch\nuser app on"), 0o600))
		require.Equal(t, "-ERR CONFIG RELOAD failed, nothing has changed: "+path+":3: user bad: Unknown command or category name in ACL; "+
			path+":4: user app: Duplicate user found. A user can only be defined once in config files\r\n", admin.Do("CONFIG", "RELOAD"))
	})
}

// TestRewriteOfIncludedUsers: users of an included file that commands have changed are written to
// the main file, so that the next start has them. Sentinel may send CONFIG REWRITE at any time.
func TestRewriteOfIncludedUsers(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		dir := t.TempDir()
		included, path := filepath.Join(dir, "users.conf"), filepath.Join(dir, "main.conf")
		const users = "user app on >p +ping\nuser same on nopass ~x:* +get\nuser gone on nopass +@all\n"
		require.NoError(t, os.WriteFile(included, []byte(users), 0o600))
		require.NoError(t, os.WriteFile(path, []byte("include "+included+"\nuser own on\n"), 0o600))
		first := w.Start(path)
		c := first.Dial()
		require.Equal(t, inproc.OK, c.Do("ACL", "SETUSER", "app", "+get", "~y"))
		require.Equal(t, ":1\r\n", c.Do("ACL", "DELUSER", "gone"))
		for range 2 { // the second rewrite finds the output of the first
			require.Equal(t, inproc.OK, c.Do("CONFIG", "REWRITE"))
		}
		written, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Contains(t, string(written), "user app on ")
		require.Contains(t, string(written), "user gone off ")
		require.NotContains(t, string(written), "user same")
		list := c.Do("ACL", "LIST")
		require.NoError(t, first.Stop())

		again := w.Start(path).Dial()
		require.Contains(t, again.Do("ACL", "GETUSER", "gone"), "off")
		require.Equal(t, ":1\r\n", again.Do("ACL", "DELUSER", "gone"))
		require.Equal(t, list, again.Do("ACL", "LIST"))
	})
}

// TestReloadWithoutAFile: options stay as they are, and other files are read again.
func TestReloadWithoutAFile(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		users := filepath.Join(t.TempDir(), "users.acl")
		require.NoError(t, os.WriteFile(users, []byte(goodUsers), 0o600))
		c := w.Start("--aclfile", users).Dial()
		require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "timeout", "9"))
		require.NoError(t, os.WriteFile(users, []byte(goodUsers+"user new on\n"), 0o600))
		require.Equal(t, inproc.OK, c.Do("CONFIG", "RELOAD"))
		require.Equal(t, inproc.Array(inproc.Bulk("timeout"), inproc.Bulk("9")), c.Do("CONFIG", "GET", "timeout"))
		require.Contains(t, c.Do("ACL", "USERS"), "new")
	})
}

// TestReloadTellsEveryFault: the reply and the log have the faults of the configuration with their
// lines, of options that only a restart can change, and of the file of users.
func TestReloadTellsEveryFault(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		r := startReloadable(t, w, "port 7000\n")
		before := r.state()
		r.write(t, "maxclients 3\ntimeout x\nmaxmemroy 1gb\n", "user app (\nusr")
		want := "-ERR CONFIG RELOAD failed, nothing has changed: " + r.file + `:2: option "timeout": argument couldn't be parsed into an integer; ` +
			r.file + `:3: unknown option "maxmemroy", did you mean "maxmemory"?; ` +
			r.users + ":2 should start with user keyword followed by the username; " + r.users + ":1: Unmatched parenthesis in selector definition\r\n"
		require.Equal(t, want, r.admin.Do("CONFIG", "RELOAD"))
		for _, fault := range []string{"option \\\"timeout\\\"", "maxmemroy", "usr", "Unmatched parenthesis"} {
			require.Contains(t, strings.ReplaceAll(r.Log.String(), r.users+":2 should", "usr"), fault)
		}
		r.write(t, "maxclients 3\nunixsocketperm 777\nrename-command GET FETCH\n", goodUsers)
		require.Equal(t, "-ERR CONFIG RELOAD failed, nothing has changed: "+r.file+`:2: option "unixsocketperm" cannot change while the server runs: restart it; `+
			r.file+`:3: option "rename-command" cannot change while the server runs: restart it`+"\r\n", r.admin.Do("CONFIG", "RELOAD"))
		require.Equal(t, before, r.state())
		require.NoError(t, os.Remove(r.file))
		require.Contains(t, r.admin.Do("CONFIG", "RELOAD"), "no such file")
		require.Equal(t, before, r.state())
	})
}

// TestBadReloadsChangeNothing: a hundred configurations, each with valid changes and at least one
// fault at a random place, change nothing.
func TestBadReloadsChangeNothing(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		r := startReloadable(t, w, "maxclients 500\nmaxmemory 1gb\nrequirepass secret\n")
		app := r.Dial()
		require.Equal(t, inproc.OK, app.Do("AUTH", "app", "p"))
		before := r.state()
		good := []string{
			"maxclients 300", "maxmemory 2gb", "timeout 9", "hz 20", "loglevel warning", "requirepass other", "partial-timeout 3", "acl-pubsub-default allchannels",
			"client-output-buffer-limit pubsub 1mb 1mb 1", "maxmemory-clients 5%", "proto-max-bulk-len 1mb", "tracking-table-max-keys 5", "# nothing",
		}
		bad := []string{
			"maxclients 0", "maxclients", "nosuch 1", "tcp-backlog 1", "databases 2", "maxmemory-policy allkeys-lru", "requirepass \"a", "include /nonexistent/x.conf",
			"loadmodule /x/other.so", "rename-command GET FETCH", "rename-command NOSUCH X", "user app on", "store redis://a", "save 1 1", "appendonly yes",
			"timeout 1 2", "notify-keyspace-events Ex", "io-threads 3 4", "\x00",
		}
		goodUserLines := []string{"user app on >q +@all ~*", "user b on nopass", "user default off", "# nothing", "user c -@all"}
		badUserLines := []string{"user app (", "user d +nosuch", "usr d", "user d <x", "user default >a <b", "user e on\nuser e on"}
		rnd := rand.New(rand.NewPCG(1, 2))
		some := func(from []string, most int) (lines []string) {
			for range rnd.IntN(most + 1) {
				lines = append(lines, from[rnd.IntN(len(from))])
			}
			return lines
		}
		for n := range 100 {
			content, users := some(good, 8), []string{"user app on nopass +get ~*"}
			if rnd.IntN(2) == 0 {
				users = []string{goodUserLines[rnd.IntN(len(goodUserLines))]}
			}
			switch file := bad[rnd.IntN(len(bad))]; rnd.IntN(3) {
			case 0:
				users = append(users, badUserLines[rnd.IntN(len(badUserLines))])
			case 1:
				users = append(users, badUserLines[rnd.IntN(len(badUserLines))])
				content = append(content, file)
			default:
				content = append(content, file)
			}
			rnd.Shuffle(len(content), func(i, j int) { content[i], content[j] = content[j], content[i] })
			text := strings.Join(content, "\n")
			r.write(t, text, strings.Join(users, "\n"))
			require.Contains(t, r.admin.Do("CONFIG", "RELOAD"), "-ERR CONFIG RELOAD failed, nothing has changed: ", "%d\n%s\n%s", n, text, users)
			require.Equal(t, before, r.state(), "%d\n%s\n%s", n, text, users)
			require.Equal(t, "$-1\r\n", app.Do("GET", "a"), "its client is still there")
		}
		require.NotContains(t, r.Log.String(), "was reloaded")
		r.write(t, "maxclients 300\n", goodUsers)
		require.Equal(t, inproc.OK, r.admin.Do("CONFIG", "RELOAD"))
		require.Equal(t, 300, r.Engine().Limits().MaxClients)
	})
}

// TestRewriteKeepsSettingsAndUsers: settings and users that were changed at run time are the same
// after a restart, whatever their names and rules are.
func TestRewriteKeepsSettingsAndUsers(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		path := writeConfig(t, "# mine\nmaxclients 500 \nuser app on >p +ping\ntransport goroutine\n# end\n")
		serve := func() *inproc.Client { // without options except those of the file
			c, err := config.Load([]string{path}, nil)
			require.NoError(t, err)
			host := w.Host()
			l, err := w.Net.Listen(host + ":0")
			require.NoError(t, err)
			s, err := server.New(c, server.Options{Listeners: []net.Listener{l}, FS: faultfs.New(), Log: slog.New(slog.DiscardHandler)})
			require.NoError(t, err)
			t.Cleanup(serving(t, s))
			w.Settle()
			conn, err := w.Net.Dial(t.Context(), host, l.Addr().String())
			require.NoError(t, err)
			return inproc.NewClient(t, conn)
		}
		c := serve()
		before, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, inproc.OK, c.Do("CONFIG", "REWRITE"))
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(before), string(after), "it says what is in force")

		require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "maxclients", "400", "requirepass", "a \"b\" #c\\"))
		require.Equal(t, inproc.OK, c.Do("ACL", "SETUSER", "app", "+get", "~\"x'\\\x01\xff", "&'", "(%R~a +get)"))
		require.Equal(t, inproc.OK, c.Do("ACL", "SETUSER", "\"", "on", ">q"))
		listed := c.Do("ACL", "LIST")
		require.Equal(t, inproc.OK, c.Do("CONFIG", "REWRITE"))
		require.Equal(t, inproc.OK, c.Do("CONFIG", "RELOAD"), "it is in force already")
		require.Equal(t, listed, c.Do("ACL", "LIST"))
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		after, err = os.ReadFile(path)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(after), "# mine\nmaxclients 400\nuser app "), "%s", after)
		require.Contains(t, string(after), "\n# end\n")

		again := serve()
		require.Equal(t, inproc.OK, again.Do("AUTH", "a \"b\" #c\\"))
		require.Equal(t, listed, again.Do("ACL", "LIST"))
		require.Equal(t, inproc.Array(inproc.Bulk("maxclients"), inproc.Bulk("400")), again.Do("CONFIG", "GET", "maxclients"))
		left, err := os.ReadDir(filepath.Dir(path))
		require.NoError(t, err)
		require.Len(t, left, 1)
	})
}

// TestRewriteThatCannotWrite: the file does not change, and the reply has the reason.
func TestRewriteThatCannotWrite(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		r := startReloadable(t, w, "timeout 5\n")
		require.Equal(t, inproc.OK, r.admin.Do("CONFIG", "SET", "maxclients", "400"))
		r.write(t, "timeout 5\nnosuch 1\n", goodUsers)
		require.Equal(t, "-ERR Rewriting config file: "+r.file+`:2: unknown option "nosuch"`+"\r\n", r.admin.Do("CONFIG", "REWRITE"))
		content, err := os.ReadFile(r.file)
		require.NoError(t, err)
		require.Equal(t, "timeout 5\nnosuch 1\n", string(content))
		r.write(t, "timeout 5\n", goodUsers)
		require.NoError(t, os.Chmod(r.file, 0o640))
		elsewhere := filepath.Join(t.TempDir(), "gone")
		require.NoError(t, os.Rename(filepath.Dir(r.file), elsewhere))
		require.Equal(t, "-ERR Rewriting config file: replacing "+r.file+": no file can be made in its directory: no such file or directory\r\n", r.admin.Do("CONFIG", "REWRITE"))
		require.NoError(t, os.Rename(elsewhere, filepath.Dir(r.file)))
		require.Equal(t, inproc.OK, r.admin.Do("CONFIG", "REWRITE"))
		require.Equal(t, "-ERR The server is running without a config file\r\n", w.Start().Dial().Do("CONFIG", "REWRITE"))
	})
}
