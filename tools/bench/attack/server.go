package attack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/cellserver/cellserver/internal/freeport"
	"github.com/cellserver/cellserver/tools/bench/loadgen"
)

// Server says how a server is started.
type Server struct {
	// Label is how tables call it.
	Label string
	// Command is the program and what options it is to have beside those of the
	// attack.
	Command []string
}

// startWithin bounds how long a server may take to answer its first command.
const startWithin = 30 * time.Second

// instance is a server that runs.
type instance struct {
	address string
	pid     int
	folder  string
	// cell says that it is cellserver, so that its own commands can be called and its
	// bound holds.
	cell bool
	cmd  *exec.Cmd
	// gone is closed when the process has ended.
	gone chan struct{}
}

// start runs the program in a folder of its own and waits until it answers.
func (s *Server) start(ctx context.Context, options ...string) (*instance, error) {
	if len(s.Command) == 0 {
		return nil, errors.New("there is no program to start")
	}
	folder, err := os.MkdirTemp("", "attack")
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	port := freeport.Choose()
	words := append(s.Command[1:len(s.Command):len(s.Command)], "--port", port, "--dir", folder, "--save", "", "--appendonly", "no")
	i := &instance{address: net.JoinHostPort("127.0.0.1", port), folder: folder, gone: make(chan struct{})}
	i.cmd = exec.Command(s.Command[0], append(words, options...)...) //nolint:gosec // whoever runs attacks chooses the server
	i.cmd.Stdout, i.cmd.Stderr = log, log
	if err := i.cmd.Start(); err != nil {
		return nil, err
	}
	i.pid = i.cmd.Process.Pid
	go func() {
		_ = i.cmd.Wait() // it ends with a signal, or the attack has ended it and lastWords says how
		close(i.gone)
	}()
	if err := i.await(ctx); err != nil {
		defer i.stop()
		return nil, fmt.Errorf("starting %s: %w: %s", s.Label, err, i.lastWords())
	}
	return i, nil
}

// await waits until the server has answered, and sees which one it is.
func (i *instance) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	target := loadgen.Target{Name: "the server", Network: "tcp", Address: i.address}
	retry := time.NewTicker(5 * time.Millisecond)
	defer retry.Stop()
	for {
		session, err := target.Dial(ctx)
		if err == nil {
			version := session.Version()
			session.Close()
			if version != "" {
				i.cell = strings.HasPrefix(version, "cellserver")
				return nil
			}
		}
		select {
		case <-i.gone:
			return errors.New("it has ended")
		case <-ctx.Done():
			return ctx.Err()
		case <-retry.C:
		}
	}
}

// alive reports whether the process runs still.
func (i *instance) alive() bool {
	select {
	case <-i.gone:
		return false
	default:
		return true
	}
}

// stop kills the process and removes its folder.
func (i *instance) stop() {
	_ = i.cmd.Process.Kill() // it may have ended
	<-i.gone
	_ = os.RemoveAll(i.folder) // the system clears its folder of temporary files
}

// logLines counts the lines that the server has logged.
func (i *instance) logLines() int64 {
	text, err := os.ReadFile(filepath.Join(i.folder, "log"))
	if err != nil {
		return 0
	}
	return int64(strings.Count(string(text), "\n"))
}

// lastWords returns the end of what the server has logged.
func (i *instance) lastWords() string {
	text, err := os.ReadFile(filepath.Join(i.folder, "log"))
	if err != nil {
		return err.Error()
	}
	const most = 2000
	return strings.TrimSpace(string(text[max(0, len(text)-most):]))
}
