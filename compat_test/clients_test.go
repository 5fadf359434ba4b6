//go:build real

package compat_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/compat_test/clients/process"
	"github.com/cellserver/cellserver/internal/programs"
)

// clientTimeout is how long one client program may take. On an idle machine the
// slowest needs three seconds, of which a busy one with four JVMs at a time makes many.
const clientTimeout = 4 * time.Minute

// mandatoryChecks are the checks that every client program reports, so that one
// which falls silent does not pass.
var mandatoryChecks = []string{
	"connect", "throttle-allowed", "throttle-denied", "pipeline-100",
	"error-usage", "error-argument", "error-unknown-command", "error-in-pipeline",
	"binary-key", "empty-key", "reconnect",
}

// client is one client library, or tool, at one version.
type client struct {
	name    string
	version string   // what it has to report; "" where the machine decides
	dir     string   // below clients/
	command []string // run in dir
	checks  []string // what it has to report
	// protocols maps what CELL_RESP asks for to the protocol that the server
	// must then see; "" asks for the default. The value "" is not compared.
	protocols map[string]string
	// installed is the file, relative to dir, that scripts/ci-setup.sh leaves
	// behind; it must be newer than every one of the inputs.
	installed string
	inputs    []string
}

func pythonClient(version, major, mode, protocol string) client {
	return client{
		name: "redis-py-" + version + "-" + mode, version: version, dir: "python",
		command: []string{filepath.Join(".venv", major, "bin", "python"), "client.py", mode},
		checks:  append([]string{"one-string", "client-info"}, mandatoryChecks...),
		protocols: map[string]string{
			"": protocol, "2": "2", "3": "3",
		},
		installed: filepath.Join(".venv", major, ".installed"),
		inputs:    []string{"requirements-" + major + ".txt"},
	}
}

func nodeClient(name, version, program, module string, protocols map[string]string) client {
	return client{
		name: name + "-" + version, version: version, dir: "node",
		command: []string{"node", program, module},
		checks:  mandatoryChecks, protocols: protocols,
		installed: filepath.Join("node_modules", ".installed"),
		inputs:    []string{"package.json", "package-lock.json"},
	}
}

func javaClient(name, version, class, library, extra string, protocols map[string]string) client {
	classpath := []string{"target/classes", "target/lib/*", library}
	return client{
		name: name + "-" + version, version: version, dir: "java",
		command: []string{"java", "-XX:TieredStopAtLevel=1", "-cp", strings.Join(classpath, string(os.PathListSeparator)), class},
		checks:  append([]string{extra}, mandatoryChecks...), protocols: protocols,
		installed: filepath.Join("target", ".installed"),
		inputs:    []string{"pom.xml", "src"},
	}
}

// clients is what the compatibility promise covers. binaries holds the built Go
// programs.
func clients(binaries string) []client {
	resp2Only := map[string]string{"": "2"}
	resp2First := map[string]string{"": "2", "3": "3"}
	resp3First := map[string]string{"": "3", "2": "2"}
	return []client{
		pythonClient("8.1.0", "8", "sync", "3"),
		pythonClient("8.1.0", "8", "asyncio", "3"),
		pythonClient("5.3.1", "5", "sync", "2"),
		pythonClient("5.3.1", "5", "asyncio", "2"),
		javaClient("jedis", "7.2.0", "compat.JedisProgram", "target/jedis-7/*", "pool-test-on-borrow", resp2First),
		javaClient("jedis", "5.2.0", "compat.JedisProgram", "target/jedis-5/*", "pool-test-on-borrow", resp2First),
		javaClient("lettuce", "7.7.0.RELEASE", "compat.LettuceProgram", "", "dynamic-interface", resp3First),
		nodeClient("ioredis", "5.11.1", "ioredis.js", "ioredis5", resp2Only),
		nodeClient("ioredis", "6.0.0", "ioredis.js", "ioredis6", resp3First),
		nodeClient("node-redis", "4.7.1", "node-redis.js", "redis4", resp2Only),
		nodeClient("node-redis", "6.3.1", "node-redis.js", "redis6", resp3First),
		{
			name: "go-redis", version: "v9.23.0", dir: "go", protocols: resp3First,
			command: []string{filepath.Join(binaries, "goredis")}, checks: mandatoryChecks,
		},
		{
			name: "rueidis", version: "v1.0.79", dir: "go", protocols: resp3First,
			command: []string{filepath.Join(binaries, "rueidis")},
			checks:  append([]string{"builder"}, mandatoryChecks...),
		},
		{
			name: "redis-cli", dir: "cli", protocols: resp2First,
			command: []string{"bash", "redis-cli.sh"},
			checks:  append([]string{"scan", "bigkeys", "stat", "prompt"}, mandatoryChecks...),
		},
		{
			name: "redis-benchmark", dir: "cli", protocols: map[string]string{"": ""},
			command: []string{"bash", "redis-benchmark.sh"},
			checks: []string{
				"benchmark-throttle", "benchmark-throttle-resp3", "benchmark-one-key",
				"benchmark-ping", "benchmark-error", "reconnect",
			},
		},
	}
}

// TestClients runs every client program of clients/ against a server process of
// its own. Each line that a program prints becomes the result of a subtest.
func TestClients(t *testing.T) {
	if testing.Short() {
		t.Skip("real clients are left to the full test run")
	}
	noticeChanges(t)
	server, err := process.Command("..", t.TempDir())
	require.NoError(t, err)
	binaries := buildGoClients(t)
	for _, c := range clients(binaries) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.needs(t)
			for ask, protocol := range c.protocols {
				name := "default"
				if ask != "" {
					name = "RESP" + ask
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					runClient(t, c, startServer(t, server), ask, protocol)
				})
			}
		})
	}
}

func startServer(t *testing.T, command []string) *process.Server {
	server, err := process.Start(command, t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	return server
}

// runClient runs one program to its end and turns its report into subtests.
func runClient(t *testing.T, c client, server *process.Server, ask, protocol string) {
	ctx, cancel := context.WithTimeout(t.Context(), clientTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.command[0], c.command[1:]...)
	cmd.Dir = filepath.Join("clients", c.dir)
	cmd.Env = append(os.Environ(), "CELL_ADDR="+server.Addr, "CELL_RESP="+ask, "PYTHONDONTWRITEBYTECODE=1")
	cmd.WaitDelay = 5 * time.Second
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	r := report{info: map[string]string{}, failed: map[string]string{}}
	cmd.Stdout = &lineWriter{each: func(line string) {
		if line != "RESTART" {
			r.add(line)
			return
		}
		if err := server.Restart(); err != nil {
			r.broken = append(r.broken, err.Error())
		}
		fmt.Fprintln(stdin, "RESTARTED")
	}}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr

	err = cmd.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("stopped after %s", clientTimeout)
	}
	r.judge(t, c, protocol, err)
	if t.Failed() {
		t.Logf("%s wrote to standard error:\n%s\nthe server wrote:\n%s", c.name, stderr.String(), server.Output())
	}
}

// report is what one client program has printed.
type report struct {
	info   map[string]string // of the lines "info <name> <value>"
	checks []string          // in the order of their lines
	failed map[string]string // check to reason
	broken []string          // what went wrong outside any check
}

func (r *report) add(line string) {
	if what, ok := strings.CutPrefix(line, "info "); ok {
		name, value, _ := strings.Cut(what, " ")
		r.info[name] = value
		return
	}
	if name, ok := strings.CutPrefix(line, "ok "); ok {
		r.checks = append(r.checks, name)
		return
	}
	what, ok := strings.CutPrefix(line, "FAIL ")
	if !ok {
		r.broken = append(r.broken, fmt.Sprintf("not a line of the protocol: %q", line))
		return
	}
	name, why, _ := strings.Cut(what, ": ")
	r.checks = append(r.checks, name)
	r.failed[name] = why
}

// judge reports every check as a subtest, and then the faults of the program as a whole: a
// missing check, another version or protocol than expected, or an exit code that its checks do
// not explain.
func (r *report) judge(t *testing.T, c client, protocol string, exit error) {
	for _, name := range r.checks {
		t.Run(name, func(t *testing.T) {
			if why, failed := r.failed[name]; failed {
				t.Error(why)
			}
		})
	}
	for _, name := range c.checks {
		if !slices.Contains(r.checks, name) {
			t.Errorf("check %s was not reported", name)
		}
	}
	for _, why := range r.broken {
		t.Error(why)
	}
	if exit != nil && len(r.failed) == 0 {
		t.Errorf("the program failed: %v", exit)
	}
	// A build of Lettuce adds its commit to the version.
	version, _, _ := strings.Cut(r.info["version"], "/")
	if c.version != "" && version != c.version {
		t.Errorf("it is version %q, want %q", version, c.version)
	}
	if protocol != "" && r.info["resp"] != protocol {
		t.Errorf("it speaks RESP%s, want RESP%s", r.info["resp"], protocol)
	}
}

// needs skips the test when what the client runs on is missing.
func (c client) needs(t *testing.T) {
	runsOn := c.command[:1]
	if c.dir == "cli" {
		runsOn = []string{"bash", "redis-cli", "redis-benchmark", "script"}
	}
	needs(t, c.name, filepath.Join("clients", c.dir), runsOn, c.installed, c.inputs)
}

// needs skips the test if a program that name runs on is missing, or if the installation in dir,
// whose stamp is the file installed, is older than an input. On CI that is a failure, since the
// setup script has to install it there.
func needs(t *testing.T, name, dir string, runsOn []string, installed string, inputs []string) {
	t.Helper()
	for _, program := range runsOn {
		if strings.HasPrefix(program, ".") {
			continue // a part of the installation, see below
		}
		programs.Need(t, program)
	}
	if installed == "" {
		return
	}
	stamp, err := os.Stat(filepath.Join(dir, installed))
	if err != nil {
		programs.Missing(t, "no installed %s", name)
	}
	for _, input := range inputs {
		require.NoError(t, filepath.WalkDir(filepath.Join(dir, input), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			info, err := entry.Info()
			if err == nil && info.ModTime().After(stamp.ModTime()) {
				programs.Missing(t, "no %s of the present %s", name, path)
			}
			return err
		}))
	}
}

// buildGoClients compiles the programs of clients/go, which is a module of its
// own, and returns the folder they are in.
func buildGoClients(t *testing.T) string {
	out := t.TempDir()
	build := exec.Command("go", "build", "-o", out, "./goredis", "./rueidis", "./caching")
	build.Dir = filepath.Join("clients", "go")
	build.Env = append(os.Environ(), "GOWORK=off")
	text, err := build.CombinedOutput()
	if err == nil {
		return out
	}
	// If modules are out of reach, needs says so for the two clients concerned.
	unreachable := regexp.MustCompile(`(?m)^go: .*(download|dial tcp|lookup|module lookup disabled)`)
	require.Regexp(t, unreachable, string(text), "the Go client programs do not compile")
	return out
}

// lineWriter calls each for every complete line written to it.
type lineWriter struct {
	each    func(string)
	partial []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.partial = append(w.partial, p...)
	for {
		line, rest, found := bytes.Cut(w.partial, []byte("\n"))
		if !found {
			return len(p), nil
		}
		w.partial = rest
		w.each(string(line))
	}
}

// noticeChanges looks at every source file of the project, so that go test does
// not take the result of an older server or client program from its cache.
func noticeChanges(t *testing.T) {
	require.NoError(t, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !entry.IsDir():
			_, err = os.Stat(path)
			return err
		case slices.Contains([]string{".git", "bin", ".venv", "node_modules", "target"}, entry.Name()):
			return filepath.SkipDir
		}
		return nil
	}))
}
