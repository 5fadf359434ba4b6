//go:build real

package deploy_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/activation"
	"github.com/cellserver/cellserver/internal/programs"
)

const unitFile = "systemd/cellserver.service"

// worstExposure is the exposure that the unit may have at most, of 10.
const worstExposure = 1.5

// exposure is the last line of systemd-analyze security.
var exposure = regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+) `)

// TestUnitIsValidAndExposesLittle: systemd finds nothing wrong with the unit, and the service
// has next to nothing that it could misuse.
func TestUnitIsValidAndExposesLittle(t *testing.T) {
	needs(t, "systemd-analyze")
	said := must(t, ".", "systemd-analyze", "security", "--offline=true", "--no-pager", "./"+unitFile)
	overall := exposure.FindStringSubmatch(said)
	require.NotNil(t, overall, said)
	level, err := strconv.ParseFloat(overall[1], 64)
	require.NoError(t, err)
	require.LessOrEqual(t, level, worstExposure, said)

	unit, err := os.ReadFile(unitFile)
	require.NoError(t, err)
	require.Contains(t, string(unit), "\nExecStart=/usr/bin/cellserver ")
	here := filepath.Join(t.TempDir(), "cellserver.service")
	text := strings.Replace(string(unit), "ExecStart=/usr/bin/cellserver ", "ExecStart="+program(t)+" ", 1)
	require.NoError(t, os.WriteFile(here, []byte(text), 0o600))
	require.Empty(t, must(t, ".", "systemd-analyze", "verify", "--man=no", here))
}

// TestSocketUnitIsValid: systemd finds nothing wrong with the socket unit of the page.
func TestSocketUnitIsValid(t *testing.T) {
	needs(t, "systemd-analyze")
	dir := t.TempDir()
	unit := blocks(t, "systemd.md", "ini", 2)[0]
	require.Contains(t, unit, "[Socket]")
	socket := filepath.Join(dir, "cellserver.socket")
	require.NoError(t, os.WriteFile(socket, []byte(unit+"\n"), 0o600))
	service := "[Service]\nExecStart=" + program(t) + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cellserver.service"), []byte(service), 0o600))
	require.Empty(t, must(t, ".", "systemd-analyze", "verify", "--man=no", socket))
}

// TestUnitStartsTheServer: what stands behind ExecStart starts the program, with a file and a
// directory of the test.
func TestUnitStartsTheServer(t *testing.T) {
	needs(t, "make")
	arguments := unitArguments(t)
	dir := t.TempDir()
	conf := filepath.Join(dir, "cellserver.conf")
	require.NoError(t, os.WriteFile(conf, []byte("appendonly yes\ndaemonize yes\n"), 0o600))
	for i, a := range arguments {
		switch a {
		case "/etc/cellserver/cellserver.conf":
			arguments[i] = conf
		case "/var/lib/cellserver":
			arguments[i] = dir
		}
	}
	s := start(t, exec.Command(program(t), arguments...))
	reply, err := s.ask("CL.THROTTLE k 1 1 60")
	require.NoError(t, err)
	require.Equal(t, "*5", reply)
	s.stop(t)
	require.DirExists(t, filepath.Join(dir, "appendonlydir"))
}

// unitArguments are the words behind the program in ExecStart.
func unitArguments(t *testing.T) []string {
	t.Helper()
	unit, err := os.ReadFile(unitFile)
	require.NoError(t, err)
	_, line, found := strings.Cut(string(unit), "\nExecStart=/usr/bin/cellserver ")
	require.True(t, found)
	line, _, _ = strings.Cut(line, "\n")
	return strings.Fields(line)
}

// systemCall is the beginning of a line of strace.
var systemCall = regexp.MustCompile(`(?m)^(?:\d+ +)?([a-z_0-9]+)\(`)

// harmless are system calls that the unit refuses: they tell of limits, and systemd has set the
// one of open files.
var harmless = map[string]bool{"setrlimit": true}

// TestUnitAllowsTheSystemCallsOfTheServer: a server that keeps state, is called and stops makes
// no system call that the unit refuses.
func TestUnitAllowsTheSystemCallsOfTheServer(t *testing.T) {
	needs(t, "strace", "systemd-analyze")
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace")
	s := startTraced(t, trace, exec.Command(program(t), "--dir="+dir, "--appendonly=yes", "--unixsocket="+filepath.Join(dir, "s")))
	for _, command := range []string{"CL.THROTTLE k 1 1 60", "BGSAVE", "BGREWRITEAOF", "EVAL return(1) 0", "INFO", "CONFIG RELOAD", "SHUTDOWN"} {
		_, _ = s.ask(command) // SHUTDOWN is not answered
	}
	require.NoError(t, s.Wait(), "%s", &s.log)
	unit, err := os.ReadFile(unitFile)
	require.NoError(t, err)
	allowed := map[string]bool{}
	for line := range strings.Lines(string(unit)) {
		filter, is := strings.CutPrefix(strings.TrimSpace(line), "SystemCallFilter=")
		if !is {
			continue
		}
		names, refused := strings.CutPrefix(filter, "~")
		for _, name := range strings.Fields(names) {
			addCalls(t, allowed, name, !refused)
		}
	}
	made, err := os.ReadFile(trace)
	require.NoError(t, err)
	// The shell that hands the port over comes first. The server opens its Unix socket itself.
	made = made[bytes.LastIndex(made, []byte(" execve(")):]
	calls := systemCall.FindAllStringSubmatch(string(made), -1)
	require.Greater(t, len(calls), 100)
	for _, call := range calls {
		require.True(t, allowed[call[1]] || harmless[call[1]], "the unit refuses %s", call[1])
	}
}

// startTraced is start for a server whose system calls strace writes to a file.
func startTraced(t *testing.T, file string, cmd *exec.Cmd) *running {
	t.Helper()
	port := activation.Open(t, "port")
	r := prepare(cmd, port.Port(), "")
	activation.Give(cmd, port)
	cmd.Path, cmd.Err = programs.Find(t, "strace"), nil
	cmd.Args = append([]string{"strace", "-f", "-qq", "-o", file}, cmd.Args...)
	r.run(t)
	return r
}

// addCalls marks the system calls of a set, which may contain others, as allowed or not.
func addCalls(t *testing.T, allowed map[string]bool, name string, allow bool) {
	t.Helper()
	if !strings.HasPrefix(name, "@") {
		allowed[name] = allow
		return
	}
	for line := range strings.Lines(must(t, ".", "systemd-analyze", "--no-pager", "syscall-filter", name)) {
		if member := strings.TrimSpace(line); member != "" && member != name && !strings.HasPrefix(member, "#") {
			addCalls(t, allowed, member, allow)
		}
	}
}
