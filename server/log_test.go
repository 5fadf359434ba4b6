package server_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"net"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/server"
)

// TestStrangersCannotFillTheLog: clients without a password cause few lines, however often they
// connect, and every line that was left out is counted.
func TestStrangersCannotFillTheLog(t *testing.T) {
	const times = 200
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.Start("--requirepass", "secret")
		admin := f.Dial()
		require.Equal(t, "+OK\r\n", admin.Do("AUTH", "secret"))
		for range times {
			c := f.Dial()
			c.Send("POST / HTTP/1.1\r\n")
			c.ExpectEnd()
			c = f.Dial()
			c.Send("AUTH canary\r\n") // its reply comes a second later, if at all
			t.Cleanup(func() { _ = c.Close() })
		}
		w.Until("all have tried", time.Second, time.Hour, func() bool { return admin.Info("acl_access_denied_auth") == strconv.Itoa(times) })
		require.NoError(t, f.Stop())
		log := f.Log.String()
		for _, message := range []string{"closed a connection that speaks HTTP", "audit: failed AUTH"} {
			lines, left := f.Log.Lines(message)
			require.LessOrEqual(t, lines, 40, message)
			require.Equal(t, times, lines+left, message)
		}
		require.NotContains(t, log, "canary")
	})
}

// loggers has the files that may create a logger: the log of a server, the report of lines that
// were left out, and a log that discards.
var loggers = []string{"server/log.go", "loglimit/loglimit.go", "session/engine.go"}

// TestEveryLineOfTheServerIsBounded: no package of the server writes to its own log or to the
// standard streams, and the message of each line is a constant, so that there are few kinds.
// audit.go, whose messages are names of commands, is the exception.
func TestEveryLineOfTheServerIsBounded(t *testing.T) {
	files := token.NewFileSet()
	seen := 0
	for _, pkg := range []string{"server", "loglimit", "process", "commands", "session", "transport", "persistence", "keyspace", "resp", "lua", "collection"} {
		err := fs.WalkDir(os.DirFS(".."), pkg, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") ||
				strings.HasPrefix(name, "transport/internal/transporttest/") {
				return err
			}
			tree, err := parser.ParseFile(files, "../"+name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(tree, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				f, ok := call.Fun.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				where := files.Position(call.Pos()).String()
				of, method := types.ExprString(f.X), f.Sel.Name
				switch {
				case of == "slog" && method == "New":
					require.Contains(t, loggers, name, where)
				case of == "slog" && slices.Contains([]string{"Debug", "Info", "Warn", "Error", "Log", "LogAttrs", "Default", "SetDefault"}, method),
					of == "log", of == "fmt" && strings.HasPrefix(method, "Print"),
					of == "os" && (method == "Stderr" || method == "Stdout") && name != "server/log.go":
					if of != "log" || len(tree.Imports) > 0 && imports(tree, "log") {
						require.Fail(t, "a line that no limiter sees", where)
					}
				}
				if slices.Contains([]string{"Debug", "Info", "Warn", "Error"}, method) && (of == "log" || strings.HasSuffix(strings.ToLower(of), ".log")) {
					seen++
					_, constant := call.Args[0].(*ast.BasicLit)
					require.True(t, constant, "%s: the message is no constant", where)
				}
				if method == "LogAttrs" {
					require.Equal(t, "audit.go", path.Base(name), where)
				}
				return true
			})
			return nil
		})
		require.NoError(t, err)
	}
	require.Greater(t, seen, 20, "the walk sees nothing")
}

// imports reports whether a file imports the package with that path.
func imports(tree *ast.File, path string) bool {
	return slices.ContainsFunc(tree.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == strconv.Quote(path) })
}

// TestBindBeyondLoopbackWithoutPasswordWarns: at the start, and when CONFIG SET causes it.
func TestBindBeyondLoopbackWithoutPasswordWarns(t *testing.T) {
	const message = "anybody who can reach this server has full access"
	// Hosts of the simulated network have loopback addresses, so its listeners stand in for others.
	listening := func(w *inproc.World) func(o *server.Options) {
		return func(o *server.Options) {
			o.Listen = func(_, _ string) (net.Listener, error) { return w.Net.Listen(net.JoinHostPort(w.Host(), "6379")) }
		}
	}
	for flags, times := range map[string]int{
		"--bind 0.0.0.0 --protected-mode no":                 1,
		"--bind 127.0.0.1 192.0.2.1 --protected-mode no":     1,
		"--bind 0.0.0.0 --protected-mode no --requirepass x": 0,
		"--bind 127.0.0.1 -::1 --protected-mode no":          0,
		"": 0,
	} {
		inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
			f := w.StartWith(listening(w), strings.Fields(flags)...)
			lines, _ := f.Log.Lines(message)
			require.Equal(t, times, lines, flags)
		})
	}
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		f := w.StartWith(listening(w), "--bind", "*", "--requirepass", "x")
		c := f.DialAt(f.Host, f.Server.Addr().String())
		require.Equal(t, inproc.OK, c.Do("AUTH", "x"))
		require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "timeout", "9", "protected-mode", "no"))
		require.NotContains(t, f.Log.String(), message)
		require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "requirepass", ""))
		require.Equal(t, inproc.OK, c.Do("CONFIG", "SET", "timeout", "8"))
		lines, _ := f.Log.Lines(message)
		require.Equal(t, 1, lines)
	})
}

// TestStartTellsAPersonWhatItIs: the text on a terminal has the address, what is persisted, the
// memory bound and how to try the server. A log gets one structured line.
func TestStartTellsAPersonWhatItIs(t *testing.T) {
	for flags, want := range map[string][]string{
		"":                                   {"nothing, memory only: --appendonly yes", "no bound: --maxmemory 1gb"},
		"--appendonly yes --maxmemory 100mb": {"everything, in ", "appendonlydir (appendfsync everysec)", "maxmemory   100mb"},
		"--save 900 1 --maxmemory 1000":      {"snapshots, in ", "(save 900 1)", "maxmemory   1000 bytes"},
		"--requirepass canary":               {"password    yes", "--askpass CL.THROTTLE"},
	} {
		for _, terminal := range []bool{true, false} {
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				screen := &inproc.LogBuffer{}
				f := w.StartWith(func(o *server.Options) {
					o.Listen = func(_, _ string) (net.Listener, error) { return w.Net.Listen("127.0.0.1:7000") }
					if terminal {
						o.Terminal = screen
					}
				}, strings.Fields(flags)...)
				if terminal {
					for _, words := range append(want, "127.0.0.1:7000", "redis-cli -p 7000", "Ctrl-C") {
						require.Contains(t, screen.String(), words)
					}
					require.NotContains(t, screen.String(), "canary")
					require.NotContains(t, f.Log.String(), "ready to accept")
				} else {
					for _, attr := range []string{"addresses=", "keeps=", "maxmemory=", "version="} {
						require.Regexp(t, "ready to accept connections.* "+attr, f.Log.String())
					}
					require.Empty(t, screen.String())
				}
			})
		}
	}
}
