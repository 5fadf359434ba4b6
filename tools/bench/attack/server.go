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

// Server specifies how to start a server.
type Server struct {
	// Label is the server's name in tables.
	Label string
	// Command is the program and its options. The options of the attack are added to them.
	Command []string
}

// startWithin is the maximum time from the start of a server to its first reply.
const startWithin = 30 * time.Second

// instance is a running server.
type instance struct {
	address string
	pid     int
	folder  string
	// cell says that the server is cellserver, which has commands of its own, and whose memory
	// must not exceed the Bound of [Result].
	cell bool
	cmd  *exec.Cmd
	// gone is closed when the process has ended.
	gone chan struct{}
}

// start runs the program in a directory of its own and waits until it answers.
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
	i.cmd = exec.Command(s.Command[0], append(words, options...)...) //nolint:gosec // the user of this tool chooses the server
	i.cmd.Stdout, i.cmd.Stderr = log, log
	if err := i.cmd.Start(); err != nil {
		return nil, err
	}
	i.pid = i.cmd.Process.Pid
	go func() {
		_ = i.cmd.Wait() // the process ends by a signal or by the attack, and then lastWords says how
		close(i.gone)
	}()
	if err := i.await(ctx); err != nil {
		defer i.stop()
		return nil, fmt.Errorf("starting %s: %w: %s", s.Label, err, i.lastWords())
	}
	return i, nil
}

// await waits until the server answers, and finds out which server it is.
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

// alive reports whether the process is still running.
func (i *instance) alive() bool {
	select {
	case <-i.gone:
		return false
	default:
		return true
	}
}

func (i *instance) stop() {
	_ = i.cmd.Process.Kill() // the process may have ended already
	<-i.gone
	_ = os.RemoveAll(i.folder) // the system cleans its temporary directory
}

// logLines returns the number of lines in the server's log, or 0 if the log cannot be read.
func (i *instance) logLines() int64 {
	text, err := os.ReadFile(filepath.Join(i.folder, "log"))
	if err != nil {
		return 0
	}
	return int64(strings.Count(string(text), "\n"))
}

// lastWords returns the last 2,000 bytes of the server's log, or the error if the log cannot be
// read.
func (i *instance) lastWords() string {
	text, err := os.ReadFile(filepath.Join(i.folder, "log"))
	if err != nil {
		return err.Error()
	}
	const most = 2000
	return strings.TrimSpace(string(text[max(0, len(text)-most):]))
}
