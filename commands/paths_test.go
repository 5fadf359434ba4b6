package commands_test

import (
	"crypto/sha1"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/server"
	"github.com/stretchr/testify/require"
)

// tree returns everything below a directory, with the content of files, except what is below the
// directory without.
func tree(t *testing.T, root, without string) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if name == without {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() {
			found[name] = d.Type().String()
			return nil
		}
		content, err := os.ReadFile(path)
		found[name] = "content: " + string(content)
		return err
	}))
	return found
}

// onDisk makes a server keep its state on the real disk.
func onDisk(o *server.Options) { o.FS = nil }

// decoys creates a directory with two directories: one for the server, and one with a file, which
// becomes the working directory of the process.
func decoys(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for _, dir := range []string{"server", "decoy/deeper"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "decoy", "there"), []byte("as it was"), 0o600))
	t.Chdir(filepath.Join(root, "decoy"))
	return root
}

// refusedPaths has calls that name a file, or write one in Redis, with their replies. path stands
// for a file.
func refusedPaths() map[string]string {
	const (
		immutable  = "-ERR CONFIG SET failed (possibly related to argument '%') - can't set immutable config\r\n"
		unknown    = "-ERR Unknown option or number of arguments for CONFIG SET - '%'\r\n"
		noUserFile = "-ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store users in the Redis configuration.\r\n"
		debug      = "-ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.\r\n"
		functions  = "-ERR functions are not supported, only scripts with EVAL and EVALSHA are\r\n"
	)
	calls := map[string]string{
		// Redis 7.0.15 replies with the same bytes.
		"CONFIG REWRITE":       "-ERR The server is running without a config file\r\n",
		"CONFIG REWRITE path":  "-ERR wrong number of arguments for 'config|rewrite' command\r\n",
		"SAVE path":            "-ERR wrong number of arguments for 'save' command\r\n",
		"BGSAVE path":          "-ERR syntax error\r\n",
		"BGSAVE SCHEDULE path": "-ERR syntax error\r\n",
		"BGREWRITEAOF path":    "-ERR wrong number of arguments for 'bgrewriteaof' command\r\n",
		"LASTSAVE path":        "-ERR wrong number of arguments for 'lastsave' command\r\n",
		"SHUTDOWN path":        "-ERR syntax error\r\n",
		"SHUTDOWN SAVE path":   "-ERR syntax error\r\n",
		"SCRIPT DUMP path":     "-ERR unknown subcommand 'DUMP'. Try SCRIPT HELP.\r\n",
		"ACL SAVE":             noUserFile,
		"ACL LOAD":             noUserFile,
		"CLUSTER SAVECONFIG":   "-ERR This instance has cluster support disabled\r\n",

		// Redis has these subcommands and replies differently.
		"MODULE LOAD path":      "-ERR unknown subcommand 'LOAD'. Try MODULE HELP.\r\n",
		"MODULE LOADEX path":    "-ERR unknown subcommand 'LOADEX'. Try MODULE HELP.\r\n",
		"FUNCTION LOAD path":    functions,
		"FUNCTION RESTORE path": "-ERR DUMP payload version or checksum are wrong\r\n",
		"DEBUG RELOAD":          debug,
		"DEBUG LOADAOF":         debug,
		"MIGRATE h 1 k 0 10":    "-ERR unknown command 'MIGRATE', with args beginning with: 'h' '1' 'k' '0' '10' \r\n",
		"DUMP k":                "-ERR unknown command 'DUMP', with args beginning with: 'k' \r\n",
		"RESTORE k 0 x":         "-ERR unknown command 'RESTORE', with args beginning with: 'k' '0' 'x' \r\n",
	}
	for _, name := range []string{
		"dir", "logfile", "unixsocket", "appenddirname", "appendonly", "save", "pidfile", "dbfilename", "aclfile",
		"appendfilename", "syslog-ident", "cluster-config-file", "enable-debug-command", "slaveof",
	} {
		calls["CONFIG SET "+name+" path"] = strings.ReplaceAll(immutable, "%", name)
		calls["CONFIG SET timeout 7 "+name+" path"] = strings.ReplaceAll(immutable, "%", name)
	}
	for _, name := range []string{"tls-cert-file", "tls-ca-cert-dir", "proc-title-template"} { // they have no meaning here
		calls["CONFIG SET "+name+" path"] = inproc.OK
	}
	for _, name := range []string{"include", "loadmodule", "rename-command", "crash-log-file", "nosuch"} {
		calls["CONFIG SET "+name+" path"] = strings.ReplaceAll(unknown, "%", name)
	}
	return calls
}

// refusedInScripts has the ways in which Lua scripts could access files, with the replies of
// Redis 7.0.15.
func refusedInScripts() map[string]string {
	scripts := map[string]string{}
	for _, global := range []string{"io", "os", "loadfile", "dofile", "require", "package", "module"} {
		scripts["return "+global] = "user_script:1: Script attempted to access nonexistent global variable '" + global + "'"
	}
	for _, call := range []string{"'SAVE'", "'BGSAVE'", "'BGREWRITEAOF'", "'CONFIG','SET','dir','made'", "'CONFIG','REWRITE'", "'SHUTDOWN','SAVE'"} {
		scripts["return redis.call("+call+")"] = "This Redis command is not allowed from script"
	}
	return scripts
}

// TestPathsAreRefused: a call that names a file, or would write one in Redis, is refused, and no
// file is created, removed or changed.
func TestPathsAreRefused(t *testing.T) {
	root := decoys(t)
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.StartWith(onDisk, "--dir", filepath.Join(root, "server"))
		c := s.Dial()
		require.Equal(t, inproc.OK, c.Do("SET", "k", "v"))
		before := tree(t, root, "")
		for call, want := range refusedPaths() {
			for _, path := range []string{filepath.Join(root, "decoy", "made"), "made", "../made", "there", "deeper"} {
				args := strings.Fields(call)
				if i := slices.Index(args, "path"); i >= 0 {
					args[i] = path
				}
				require.Equal(t, want, c.Do(args...), "%q", args)
			}
		}
		for script, want := range refusedInScripts() {
			sum := sha1.Sum([]byte(script))
			require.Equal(t, fmt.Sprintf("-ERR %s script: %x, on @user_script:1.\r\n", want, sum), c.Do("EVAL", script, "0"))
		}
		require.Equal(t, inproc.Array(inproc.Bulk("timeout"), inproc.Bulk("0")), c.Do("CONFIG", "GET", "timeout"))
		require.Equal(t, before, tree(t, root, ""))
		require.NoError(t, s.Stop())
		require.Equal(t, before, tree(t, root, ""))
	})
}

// ownFiles matches the files of persistence, whose directory only the operator names.
var ownFiles = regexp.MustCompile(`^(cellserver\.(lock|manifest)|base\.\d+\.snap|incr\.\d+\.log)$`)

// TestNoArgumentIsAPath: every command, and every option that can be set, gets paths as
// arguments. The server writes only its own files.
func TestNoArgumentIsAPath(t *testing.T) {
	root := decoys(t)
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		s := w.StartWith(onDisk, "--dir", filepath.Join(root, "server"), "--appendonly", "yes")
		own := filepath.Join("server", "appendonlydir")
		before := tree(t, root, own)
		require.Contains(t, before, filepath.Join("decoy", "there"))
		worker := s.Engine().NewWorker()
		paths := []string{filepath.Join(root, "decoy", "made"), "made", "../server/appendonlydir/made", filepath.Join(root, "decoy", "there")}
		for _, cmd := range s.Engine().Table().All() {
			if cmd.Name == "shutdown" {
				continue // TestPathsAreRefused covers it
			}
			for n := range len(paths) + 1 {
				session, _ := s.Engine().Open(inproc.NewPeer())
				require.NotNil(t, session)
				turn := session.Feed(worker, inproc.Encode(nil, append(strings.Split(cmd.Name, "|"), paths[:n]...)...), nil)
				require.NotContains(t, string(turn.Whole()), "ERR internal error", cmd.Name)
				session.Closed()
			}
		}
		c := s.Dial()
		for _, option := range config.Default().Get(func(string) bool { return true }) {
			for _, path := range paths {
				c.Do("CONFIG", "SET", option[0], path)
			}
		}
		for _, path := range paths {
			require.Equal(t, inproc.OK, c.Do("SET", path, path))
		}
		w.Settle() // BGSAVE may be running
		require.Equal(t, inproc.OK, c.Do("SAVE"))
		require.NoError(t, s.Stop())
		require.Equal(t, before, tree(t, root, own))
		for name := range tree(t, filepath.Join(root, own), "") {
			require.Regexp(t, ownFiles, name)
		}
	})
}
