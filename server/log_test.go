package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/server"
)

var leftOut = regexp.MustCompile(`left_out=(\d+)`)

// linesOf returns how many lines of the log contain message, and how many more the log reports as
// left out.
func linesOf(log, message string) (lines, left int) {
	for _, line := range strings.Split(log, "\n") {
		if !strings.Contains(line, message) {
			continue
		}
		if !strings.Contains(line, "lines were left out") {
			lines++
		}
		if m := leftOut.FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[1])
			left += n
		}
	}
	return lines, left
}

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
			lines, left := linesOf(log, message)
			require.LessOrEqual(t, lines, 40, message)
			require.Equal(t, times, lines+left, message)
		}
		require.NotContains(t, log, "canary")
	})
}

// TestBoundedLogIsAHandler: the handler passes slog's own tests.
func TestBoundedLogIsAHandler(t *testing.T) {
	var out bytes.Buffer
	now := time.Duration(0)
	h := server.NewBoundedLog(slog.NewJSONHandler(&out, nil), func() time.Duration { now += 10 * time.Second; return now })
	require.NoError(t, slogtest.TestHandler(h, func() []map[string]any {
		var lines []map[string]any
		for _, line := range bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n")) {
			var m map[string]any
			require.NoError(t, json.Unmarshal(line, &m))
			lines = append(lines, m)
		}
		return lines
	}))
}

// TestLogLinesAreLimitedByKind: ten lines of a kind are written at once and one in ten seconds, for
// each kind separately. The next line says how many were left out, or a line of its own does.
func TestLogLinesAreLimitedByKind(t *testing.T) {
	var out bytes.Buffer
	now := time.Duration(0)
	h := server.NewBoundedLog(slog.NewTextHandler(&out, nil), func() time.Duration { return now })
	log := slog.New(h)
	write := func(message string, n int) {
		for range n {
			log.Warn(message) //nolint:sloglint // a kind of the test
		}
	}
	count := func(message string, lines, left int) {
		t.Helper()
		gotLines, gotLeft := linesOf(out.String(), message)
		require.Equal(t, []int{lines, left}, []int{gotLines, gotLeft})
	}
	write("one", 100)
	write("two", 3)
	count("one", 10, 0)
	count("two", 3, 0)
	now += 10 * time.Second
	write("one", 5)
	count("one", 11, 90)
	server.ReportLeftOut(h, false)
	count("one", 11, 90)
	now += 10 * time.Second
	server.ReportLeftOut(h, false)
	count("one", 11, 94)
	write("one", 7)
	server.ReportLeftOut(h, true)
	count("one", 11, 101)
	count("two", 3, 0)
	server.ReportLeftOut(h, true)
	count("one", 11, 101)

	for i := range 10_000 { // kinds are bounded, too
		log.Warn(fmt.Sprintf("kind %d", i)) //nolint:sloglint // as above
	}
	lines := strings.Count(out.String(), "\n")
	require.Less(t, lines, 400)
	require.NotContains(t, out.String(), "kind 9999")
}

// loggers has the files that may create a logger: the log of a server, the report of lines that
// were left out, and a log that discards.
var loggers = []string{"server/log.go", "server/log_bounds.go", "session/engine.go"}

// TestEveryLineOfTheServerIsBounded: no package of the server writes to its own log or to the
// standard streams, and the message of each line is a constant, so that there are few kinds.
// audit.go, whose messages are names of commands, is the exception.
func TestEveryLineOfTheServerIsBounded(t *testing.T) {
	files := token.NewFileSet()
	seen := 0
	for _, pkg := range []string{"server", "commands", "session", "transport", "persistence", "keyspace", "resp", "lua", "collection"} {
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
			lines, _ := linesOf(f.Log.String(), message)
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
		lines, _ := linesOf(f.Log.String(), message)
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
