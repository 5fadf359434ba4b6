//go:build real

package compat_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/compat_test/clients/process"
)

// libraryTimeout is how long the program of one library may take; the windows and
// buckets that it waits for are a second or two long.
const libraryTimeout = 4 * time.Minute

// libraryTries is how often the program of a library that fails is run. Their windows
// are of real time, and there are tests among them that hold jobs to a few
// milliseconds: a busy machine fails at random, a wrong answer every time.
const libraryTries = 3

// compatibilityPage is written from what the programs report when
// CELL_WRITE_COMPATIBILITY is set, and compared with it otherwise.
const compatibilityPage = "../docs/compatibility.md"

// library is one limiter library, or one way of using a client, that works on Redis.
type library struct {
	name     string
	version  string // what its program has to report
	language string
	dir      string   // below libraries/
	command  []string // run in dir
	programs []string // what has to be on the PATH beside command's own
	// checks is how many checks the program reports, so that one which falls silent
	// does not pass.
	checks int
	// known maps a check that fails to the reason.
	known     map[string]string
	installed string
	inputs    []string
	// what says what was run, for the table.
	what string
}

// TestLibraries runs the program of every library against a server process of its
// own, and holds docs/compatibility.md to what they report.
func TestLibraries(t *testing.T) {
	if testing.Short() {
		t.Skip("real libraries are left to the full test run")
	}
	noticeChanges(t)
	server, err := process.Command("..", t.TempDir())
	require.NoError(t, err)
	all := libraries()
	var mu sync.Mutex
	rows := make(map[string]string)
	slots := make(chan struct{}, 4) // a JVM or two at a time is enough
	t.Run("programs", func(t *testing.T) {
		for _, l := range all {
			t.Run(l.dir+"/"+l.name, func(t *testing.T) {
				t.Parallel()
				slots <- struct{}{}
				defer func() { <-slots }()
				needs(t, l.name, filepath.Join("libraries", l.dir), append(l.programs, l.command[0]), l.installed, l.inputs)
				row := runLibrary(t, &l, server)
				mu.Lock()
				defer mu.Unlock()
				rows[l.dir+"/"+l.name] = row
			})
		}
	})
	if len(rows) < len(all) || t.Failed() || os.Getenv("CELL_SERVER_CMD") != "" {
		return // a runtime was missing, or the page is about another server
	}
	page := compatibilityText(all, rows)
	if os.Getenv("CELL_WRITE_COMPATIBILITY") != "" {
		require.NoError(t, os.WriteFile(compatibilityPage, []byte(page), 0o600))
		return
	}
	want, err := os.ReadFile(compatibilityPage)
	require.NoError(t, err)
	require.Equal(t, string(want), page, "docs/compatibility.md is out of date: run `make compatibility`")
}

// runLibrary runs one program, with a server of its own each time, until it passes or
// has had its tries, turns its last report into subtests and returns its row of the
// table.
func runLibrary(t *testing.T, l *library, command []string) string {
	for try := 1; ; try++ {
		r, output, err := playLibrary(t, l, startServer(t, command))
		if !r.holds(l, err) && try < libraryTries {
			t.Logf("try %d: %v %q\n%s", try, err, r.failed, output)
			continue
		}
		passed := r.judgeLibrary(t, l, err)
		if t.Failed() {
			t.Logf("%s: %s", l.name, output)
		}
		return fmt.Sprintf("%d of %d", passed, len(r.checks))
	}
}

// playLibrary runs one program to its end and returns its report, what it and the server
// had to say beside, and how it ended.
func playLibrary(t *testing.T, l *library, server *process.Server) (r report, output string, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), libraryTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, l.command[0], l.command[1:]...)
	cmd.Dir = filepath.Join("libraries", l.dir)
	cmd.Env = append(os.Environ(), "CELL_ADDR="+server.Addr, "PYTHONDONTWRITEBYTECODE=1")
	cmd.WaitDelay = 5 * time.Second
	r = report{info: map[string]string{}, failed: map[string]string{}}
	cmd.Stdout = &lineWriter{each: r.add}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err = cmd.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("stopped after %s", libraryTimeout)
	}
	return r, fmt.Sprintf("on standard error:\n%s\nfrom the server:\n%s", stderr.String(), server.Output()), err
}

// holds tells whether a report is what it has to be.
func (r *report) holds(l *library, exit error) bool {
	for name := range r.failed {
		if _, expected := l.known[name]; !expected {
			return false
		}
	}
	return len(r.broken) == 0 && len(r.checks) == l.checks && (exit == nil || len(r.failed) > 0)
}

// judgeLibrary reports every check as a subtest and returns how many passed. A check
// that is known to fail has to fail.
func (r *report) judgeLibrary(t *testing.T, l *library, exit error) (passed int) {
	for _, name := range r.checks {
		why, failed := r.failed[name]
		_, expected := l.known[name]
		if !failed {
			passed++
		}
		t.Run(name, func(t *testing.T) {
			switch {
			case failed && !expected:
				t.Error(why)
			case expected && !failed && os.Getenv("CELL_SERVER_CMD") == "":
				t.Error("it passes now: take it out of the list of known failures")
			}
		})
	}
	for name := range l.known {
		if !slices.Contains(r.checks, name) {
			t.Errorf("check %s, which is known to fail, was not reported", name)
		}
	}
	if len(r.checks) != l.checks {
		t.Errorf("%d checks were reported, want %d: %q", len(r.checks), l.checks, r.checks)
	}
	for _, why := range r.broken {
		t.Error(why)
	}
	if exit != nil && len(r.failed) == 0 {
		t.Errorf("the program failed: %v", exit)
	}
	if r.info["version"] != l.version {
		t.Errorf("it is version %q, want %q", r.info["version"], l.version)
	}
	return passed
}

// compatibilityText is the page that says how each library fared.
func compatibilityText(all []library, rows map[string]string) string {
	var b strings.Builder
	b.WriteString(compatibilityHead)
	language := ""
	for _, l := range all {
		if l.language != language {
			language = l.language
			fmt.Fprintf(&b, "\n## %s\n\n| Library | Version | Checks | What was run |\n|---|---|---|---|\n", language)
		}
		what := l.what
		for _, name := range slices.Sorted(maps.Keys(l.known)) {
			what += fmt.Sprintf("<br>**%s** fails: %s.", name, l.known[name])
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", l.name, l.version, rows[l.dir+"/"+l.name], what)
	}
	b.WriteString(compatibilityTail)
	for _, o := range omissions() {
		fmt.Fprintf(&b, "| %s | %s |\n", o.name, o.why)
	}
	return b.String()
}

const compatibilityHead = `<!-- Written by "make compatibility" from what the programs report; do not edit. -->

# Libraries that run on cellserver

Each line is a library that was installed from its registry at a pinned version and run
against cellserver. "Own tests" are those that the package or its module contains. All
other checks are programs of ours in the library's language, in
[compat_test/libraries](../compat_test/libraries/README.md). They check what each call
admits, refuses and returns. They also pass against Redis 7.0, except the checks that use
cellserver's own commands (` + "`native-…`" + ` and the redis-cell crates). The test run repeats all
of this and fails if a line of this page is no longer true.
`

const compatibilityTail = `
## What was not run, and why

| Library | Reason |
|---|---|
`
