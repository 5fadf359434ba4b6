//go:build real

package docs_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/examples/demo"
	"github.com/cellserver/cellserver/internal/freeport"
	"github.com/cellserver/cellserver/internal/programs"
)

// network is what the addresses of machines begin with, in place of 10.0.0. of the pages. None
// is 127.0.0.1, from which connections come.
const network = "127.0.0.1"

// patience is the longest wait for an event that has to come. A sentinel whose machine stood
// still for two seconds does nothing for half a minute (TILT).
const patience = 3 * time.Minute

// machines are those of the pages, 10.0.0.1 to 10.0.0.3, on one machine: their addresses are
// 127.0.0.11 to 127.0.0.13, which only Linux has without configuration. Each has a directory.
type machines struct {
	t    *testing.T
	root string
	// port and sentinel are the ports in place of 6379 and 26379.
	port, sentinel string
	started        sync.WaitGroup
}

// ssh restarts the server on a machine, which is all that the pages want of systemd.
const ssh = `#!/bin/bash
set -eu
[ "${*:2}" = "systemctl restart cellserver" ]
cd "$ROOT/${1#root@127.0.0.1}"
kill "$(cat limits.pid)"
while kill -0 "$(cat limits.pid)" 2>/dev/null; do sleep 0.01; done
cellserver limits.conf >>log 2>&1 </dev/null &
echo $! >limits.pid
`

// newMachines makes the machines, on which nothing runs so far.
func newMachines(t *testing.T) *machines {
	t.Helper()
	if testing.Short() {
		t.Skip("sentinels are left to the full test run")
	}
	sentinel, err := demo.Sentinel(`"$@"`)
	if err != nil {
		programs.Missing(t, "no sentinel")
	}
	client := programs.Find(t, "redis-cli")
	m := &machines{t: t, root: t.TempDir(), port: freeport.Choose(), sentinel: freeport.Choose()}
	for _, folder := range []string{"bin", "1", "2", "3"} {
		require.NoError(t, os.Mkdir(filepath.Join(m.root, folder), 0o700))
	}
	program := filepath.Join(m.root, "bin", "cellserver")
	said, err := exec.Command("go", "build", "-o", program, "../cmd/cellserver").CombinedOutput()
	require.NoError(t, err, "%s", said)
	m.file("bin/redis-sentinel", "#!/bin/bash\nexec "+strings.Join(sentinel, " ")+"\n")
	m.file("bin/redis-cli", "#!/bin/bash\nexec "+client+" -p \"$PORT\" \"$@\"\n") // a port in the line counts
	m.file("bin/ssh", ssh)
	t.Cleanup(m.stop)
	return m
}

func (m *machines) file(name, content string) {
	m.t.Helper()
	require.NoError(m.t, os.WriteFile(filepath.Join(m.root, name), []byte(content), 0o700))
}

// ports are those that the pages name.
var ports = regexp.MustCompile(`\b(2?6379)\b`)

// local is what a page has, with the addresses and ports of the test.
func (m *machines) local(text string) string {
	text = strings.ReplaceAll(text, "10.0.0.", network)
	return ports.ReplaceAllStringFunc(text, func(port string) string {
		if port == "26379" {
			return m.sentinel
		}
		return m.port
	})
}

// onMachine is a line that starts a program on a machine, with options or without.
var onMachine = regexp.MustCompile(`(?m)^(\S+) (\S+)\.conf( [^#]*?)? +# on 10\.0\.0\.(\d)$`)

// startAll runs the commands of a block, each in the folder of its machine.
func (m *machines) startAll(block string) {
	m.t.Helper()
	lines := onMachine.FindAllStringSubmatch(block, -1)
	require.Len(m.t, lines, strings.Count(block, "\n")+1, "a line that starts nothing: %s", block)
	for _, l := range lines {
		folder := filepath.Join(m.root, l[4])
		log, err := os.OpenFile(filepath.Join(folder, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		require.NoError(m.t, err)
		cmd := exec.Command(filepath.Join(m.root, "bin", l[1]), append([]string{l[2] + ".conf"}, strings.Fields(m.local(l[3]))...)...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = folder, log, log
		require.NoError(m.t, cmd.Start())
		m.file(filepath.Join(l[4], l[2]+".pid"), strconv.Itoa(cmd.Process.Pid))
		m.started.Go(func() {
			_ = cmd.Wait() // it is killed
			log.Close()
		})
	}
}

// kill ends a program of a machine, as kill -9 does.
func (m *machines) kill(machine, program string) {
	m.t.Helper()
	pid, err := os.ReadFile(filepath.Join(m.root, machine, program+".pid"))
	require.NoError(m.t, err)
	number, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	require.NoError(m.t, err)
	require.NoError(m.t, syscall.Kill(number, syscall.SIGKILL))
}

// stop ends all programs, and shows what they have said if the test has failed.
func (m *machines) stop() {
	pids, _ := filepath.Glob(filepath.Join(m.root, "*", "*.pid")) // the pattern is right
	for _, file := range pids {
		pid, _ := os.ReadFile(file)
		if number, err := strconv.Atoi(strings.TrimSpace(string(pid))); err == nil {
			_ = syscall.Kill(number, syscall.SIGKILL) // it may have ended
		}
	}
	m.started.Wait()
	logs, _ := filepath.Glob(filepath.Join(m.root, "*", "log"))
	for _, file := range logs {
		if said, err := os.ReadFile(file); err == nil && m.t.Failed() {
			m.t.Logf("%s:\n%s", file, said[max(0, len(said)-3000):])
		}
	}
}

// types has bash run a block of a page. A line that fails ends it.
func (m *machines) types(block string) string {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", m.local(block))
	cmd.Env = append(os.Environ(), "ROOT="+m.root, "PORT="+m.port, "PATH="+filepath.Join(m.root, "bin")+":"+os.Getenv("PATH"))
	cmd.WaitDelay = patience // for what bash has started, so that it closes the output
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	require.NoError(m.t, err, "%s\n%s", m.local(block), out.String())
	return out.String()
}

// awaits types a line until its output has some words.
func (m *machines) awaits(line, words string) {
	m.t.Helper()
	said := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if said = m.types(line + " || true"); strings.Contains(said, m.local(words)) {
			return
		}
	}
	require.Fail(m.t, "it does not come", "%s: %s in\n%s", line, words, said)
}

// client is one of the server on a machine.
func (m *machines) client(machine string) *redis.Client {
	c := redis.NewClient(&redis.Options{
		Addr: net.JoinHostPort(network+machine, m.port), Password: "secret", DisableIdentity: true, MaxRetries: -1, ReadTimeout: patience,
	})
	m.t.Cleanup(func() { _ = c.Close() })
	return c
}

// pageBlocks returns the blocks of a page in a language, and checks their number.
func pageBlocks(t *testing.T, page, language string, want int) (found []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, b := range regexp.MustCompile("(?s)\n```"+language+"\n(.*?)\n```\n").FindAllStringSubmatch(string(text), -1) {
		found = append(found, b[1])
	}
	require.Len(t, found, want, "blocks of %s in %s", language, page)
	return found
}

// configure writes the files of the page. Each machine also says which address it is at: on one
// machine connections do not show that.
func (m *machines) configure(moreOfServers, moreOfSentinels string) {
	m.t.Helper()
	conf := pageBlocks(m.t, "high-availability.md", "conf", 3)
	for i := 1; i <= 3; i++ {
		machine := strconv.Itoa(i)
		folder := filepath.Join(m.root, machine)
		limits := strings.Replace(conf[0], "bind 10.0.0.1", "bind 10.0.0."+machine, 1)
		if i == 2 {
			limits += "\n" + conf[1]
		}
		limits = strings.Replace(limits, "/var/lib/cellserver", folder, 1)
		m.file(machine+"/limits.conf", m.local(limits)+"\nreplica-announce-ip "+network+machine+"\n"+moreOfServers)
		m.file(machine+"/sentinel.conf", m.local(conf[2])+"\nbind "+network+machine+"\nsentinel announce-ip "+network+machine+"\n"+moreOfSentinels)
	}
}
