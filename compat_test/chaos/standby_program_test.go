package chaos_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/storetest"
)

const (
	// stackPace is how many calls a stack makes in a second while all goes well.
	stackPace = 500
	// hotKey is the key that all stacks ask about; its limit is hotBurst and hotRate.
	hotKey = "hot"
)

// stack is a client library, with its own support for Sentinel, that counts under a key of its
// own and asks about the hot limit until end.
type stack interface {
	name() string
	// key is the key under which it counts.
	key() string
	// mark asks to hear of the next call that begins from now on and is answered.
	mark()
	// answered receives once after each mark.
	answered() <-chan struct{}
	// end ends it and returns what it did.
	end(t *testing.T) stackReport
}

// stackReport is what a stack did. Programs print it as JSON.
type stackReport struct {
	Library string `json:"library"`
	Version string `json:"version"`
	// Acked are answered calls of INCR, Unknown those that failed and may have run, and
	// Refused those that certainly have not run.
	Acked   int64 `json:"acked"`
	Unknown int64 `json:"unknown"`
	Refused int64 `json:"refused"`
	// Longest is the longest time without an answered call, in milliseconds.
	Longest float64 `json:"longest_ms"`
	// Hot are the call and the return of each admitted call of the hot limit, in nanoseconds
	// of the machine's monotonic clock.
	Hot [][2]int64 `json:"hot"`
	// Errors counts failed calls by kind, for people.
	Errors map[string]int `json:"errors"`
}

// stackProgram is a program of compat_test/clients. Its README says how they talk.
type stackProgram struct {
	library string // also the key under which it counts
	version string // what it has to report
	dir     string // below compat_test/clients
	command []string
	// installed is the file, relative to dir, that scripts/ci-setup.sh leaves behind; it must be
	// newer than every one of the inputs.
	installed string
	inputs    []string

	cmd    *exec.Cmd
	input  io.WriteCloser
	stderr bytes.Buffer // read when the program has ended
	told   chan struct{}
	report chan string // the line that is not "answered"; closed when there are no more
}

// stackPrograms are the stacks of other languages.
func stackPrograms() []*stackProgram {
	return []*stackProgram{
		{
			library: "redis-py", version: "8.1.0", dir: "python",
			command:   []string{filepath.Join(".venv", "8", "bin", "python"), "standby.py"},
			installed: filepath.Join(".venv", "8", ".installed"), inputs: []string{"requirements-8.txt"},
		},
		{
			library: "ioredis", version: "6.0.0", dir: "node",
			command:   []string{"node", "standby.js", "ioredis6"},
			installed: filepath.Join("node_modules", ".installed"), inputs: []string{"package.json", "package-lock.json"},
		},
		{
			library: "lettuce", version: "7.7.0.RELEASE", dir: "java",
			command: []string{
				"java", "-XX:TieredStopAtLevel=1", "-cp",
				strings.Join([]string{"target/classes", "target/lib/*"}, string(os.PathListSeparator)), "compat.StandbyProgram",
			},
			installed: filepath.Join("target", ".installed"), inputs: []string{"pom.xml", "src"},
		},
	}
}

// missing says why the program cannot run here, or "".
func (p *stackProgram) missing() string {
	if !strings.HasPrefix(p.command[0], ".") { // others are part of what is installed
		if _, err := exec.LookPath(p.command[0]); err != nil {
			return p.library + " needs " + p.command[0]
		}
	}
	dir := p.folder()
	stamp, err := os.Stat(filepath.Join(dir, p.installed))
	if err != nil {
		return p.library + " is not installed"
	}
	why := ""
	for _, input := range p.inputs {
		_ = filepath.WalkDir(filepath.Join(dir, input), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			if info, err := entry.Info(); err == nil && info.ModTime().After(stamp.ModTime()) {
				why = p.library + " is installed from an older " + path
			}
			return nil
		})
	}
	return why
}

func (p *stackProgram) folder() string { return filepath.Join("..", "clients", p.dir) }

// start starts the program for as long as the test lasts.
func (p *stackProgram) start(t *testing.T, sentinels []string) {
	t.Helper()
	p.cmd = exec.Command(p.command[0], p.command[1:]...) //nolint:gosec // a program of this project
	p.cmd.Dir = p.folder()
	p.cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1",
		"CELL_SENTINELS="+strings.Join(sentinels, ","), "CELL_MASTER="+storetest.MasterName, "CELL_KEY="+p.key(),
		"CELL_PACE="+strconv.Itoa(stackPace), "CELL_HOT="+strings.Join(hotCommand(), " "))
	p.cmd.Stderr = &p.stderr
	input, err := p.cmd.StdinPipe()
	require.NoError(t, err)
	output, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.input, p.told, p.report = input, make(chan struct{}, 1), make(chan string, 1)
	require.NoError(t, p.cmd.Start())
	go p.read(output)
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it has ended, as a rule
		for range p.report {     // until its output ends
		}
		_ = p.cmd.Wait()
		if t.Failed() {
			t.Logf("%s wrote to standard error last:\n%s", p.library, p.stderr.Bytes()[max(0, p.stderr.Len()-1500):])
		}
	})
}

// read passes on what the program prints, until it ends.
func (p *stackProgram) read(output io.Reader) {
	defer close(p.report)
	lines := bufio.NewReader(output)
	for {
		line, err := lines.ReadString('\n')
		switch line = strings.TrimSpace(line); line {
		case "":
		case "answered":
			p.told <- struct{}{}
		default:
			p.report <- line
		}
		if err != nil {
			return
		}
	}
}

func (p *stackProgram) name() string { return p.library }

func (p *stackProgram) key() string { return "counter-" + p.library }

func (p *stackProgram) mark() { _, _ = io.WriteString(p.input, "mark\n") } // nothing is answered if it has ended

func (p *stackProgram) answered() <-chan struct{} { return p.told }

func (p *stackProgram) end(t *testing.T) (r stackReport) {
	t.Helper()
	require.NoError(t, p.input.Close())
	select {
	case line, ok := <-p.report:
		require.True(t, ok, "%s ended without a report", p.library)
		require.NoError(t, json.Unmarshal([]byte(line), &r), "%.200s", line)
	case <-time.After(storetest.Patience):
		require.Fail(t, p.library+" does not end")
	}
	version, _, _ := strings.Cut(r.Version, "/") // a build of Lettuce adds its commit
	require.Equal(t, p.version, version, p.library)
	return r
}

// hotCommand is the call of the hot limit.
func hotCommand() []string {
	return []string{"CL.THROTTLE", hotKey, strconv.Itoa(hotBurst), strconv.Itoa(hotRate), "1"}
}
