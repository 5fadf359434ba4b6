//go:build real

// Package deploy_test checks the files for operators with the tools that read them.
// These are an image with buildah, a unit with systemd-analyze, rules and a dashboard with promtool.
// The program is then started from the files that the tools accept. The chart and the compose file
// have their tests in tools/manifests.
package deploy_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/activation"
	"github.com/cellserver/cellserver/internal/freeport"
	"github.com/cellserver/cellserver/internal/programs"
)

// patience is how long a test waits for what should come soon.
const patience = time.Minute

// needs ends a test that lacks a program, and a short run of it.
func needs(t *testing.T, names ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("it compiles the program")
	}
	programs.Need(t, names...)
}

// must runs a program in a folder and returns what it says.
func must(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %s\n%s", name, strings.Join(args, " "), said)
	return string(said)
}

// files are what an image consists of, as make image-files leaves it.
var files = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "image-files")
	if err != nil {
		return "", err
	}
	made = dir
	if said, err := exec.Command("make", "-C", "..", "image-files", "IMAGE="+dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("make image-files: %w\n%s", err, said)
	}
	return dir, nil
})

// made is the folder that files has made, or "".
var made string

// imageFiles returns the folder of files.
func imageFiles(t *testing.T) string {
	t.Helper()
	dir, err := files()
	require.NoError(t, err)
	return dir
}

// program returns the path of the static program.
func program(t *testing.T) string {
	t.Helper()
	return filepath.Join(imageFiles(t), "root", "cellserver")
}

func TestMain(m *testing.M) {
	status := m.Run()
	if made != "" {
		_ = os.RemoveAll(made) // what is left is the system's to delete
	}
	os.Exit(status)
}

// running is a server that a test has started.
type running struct {
	*exec.Cmd
	port     string
	password string
	log      strings.Builder
}

// start starts a server and waits until it answers PING.
func start(t *testing.T, cmd *exec.Cmd) *running { return startWith(t, cmd, "") }

// startWith starts a server with a password, which inherits its port and more sockets.
func startWith(t *testing.T, cmd *exec.Cmd, password string, more ...*activation.Socket) *running {
	t.Helper()
	s := activation.Open(t, "port")
	r := prepare(cmd, s.Port(), password)
	activation.Give(cmd, append([]*activation.Socket{s}, more...)...)
	r.run(t)
	return r
}

// startOnPort is startWith of a server that cannot inherit sockets, since its root has no shell that
// tells it its number.
func startOnPort(t *testing.T, cmd *exec.Cmd, password string) *running {
	t.Helper()
	r := prepare(cmd, freeport.Choose(), password)
	cmd.Args = append(cmd.Args, "--port="+r.port)
	r.run(t)
	return r
}

func prepare(cmd *exec.Cmd, port, password string) *running {
	if password != "" {
		cmd.Env = append(cmd.Env, "CELLSERVER_REQUIREPASS="+password)
	}
	return &running{Cmd: cmd, port: port, password: password}
}

// run starts the server and waits until it answers.
func (r *running) run(t *testing.T) {
	t.Helper()
	cmd := r.Cmd
	cmd.Stderr = &r.log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill() // it has ended
			_ = cmd.Wait()
		}
	})
	require.Eventually(t, func() bool {
		reply, err := r.ask("PING")
		return err == nil && reply == "+PONG"
	}, patience, 5*time.Millisecond, "%s", &r.log)
}

// ask sends one command and returns the first line of the reply.
func (r *running) ask(command string) (string, error) {
	lines, err := r.askAll(command, 1)
	if err != nil {
		return "", err
	}
	return lines[0], nil
}

// askAll sends one command and returns n lines of the reply.
func (r *running) askAll(command string, n int) (lines []string, err error) {
	c, err := net.DialTimeout("tcp", "127.0.0.1:"+r.port, patience)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	in := bufio.NewReader(c)
	if r.password != "" {
		command = "AUTH " + r.password + "\r\n" + command
		n++
	}
	if _, err := c.Write([]byte(command + "\r\n")); err != nil {
		return nil, err
	}
	for len(lines) < n {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	if r.password != "" {
		lines = lines[1:]
	}
	return lines, nil
}

// stop ends the server with a signal, which it does with status 0.
func (r *running) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, r.Process.Signal(syscall.SIGTERM))
	require.NoError(t, r.Wait(), "%s", &r.log)
}
