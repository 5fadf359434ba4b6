//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// readyVariable marks a process as a server in the background. Its value is the descriptor for the
// report to the starting process.
const readyVariable = "_CELLSERVER_READY_FD"

// listens is the report that a server in the background listens. Every other report is an error.
const listens = "listens\n"

// detach starts this program again in the background and waits until it listens. It returns the
// error that the other process reports. Unlike with Redis, the caller learns that a port is in use
// or a directory does not exist.
func detach(args []string, stdin io.Reader) error {
	path, err := os.Executable()
	if err != nil {
		return fmt.Errorf("daemonize: %w", err)
	}
	news, tell, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("daemonize: %w", err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), readyVariable+"=3")
	cmd.ExtraFiles = []*os.File{tell} // the descriptor of the file in the new process is 3
	cmd.Stdin = stdin
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = errors.Join(cmd.Start(), tell.Close())
	if err != nil {
		return fmt.Errorf("daemonize: %w", err)
	}
	said, err := io.ReadAll(news)
	switch {
	case err != nil:
		return fmt.Errorf("daemonize: %w", err)
	case string(said) == listens:
		return nil
	case len(said) == 0:
		return errors.New("daemonize: the server ended before it listened")
	}
	return errors.New(strings.TrimPrefix(strings.TrimSpace(string(said)), "cellserver: "))
}

// detached returns the writer for the report, in a process that detach has started. In other
// processes it returns nil. Until the server listens, errors are written to the same writer.
func detached() *os.File {
	if os.Getenv(readyVariable) == "" {
		return nil
	}
	_ = os.Unsetenv(readyVariable) // Unsetenv cannot fail, because the name is valid
	return os.NewFile(3, "ready")
}
