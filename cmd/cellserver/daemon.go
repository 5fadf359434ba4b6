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

// readyVariable marks a process as a server in the background. Its value is the descriptor on
// which the starting process waits for its report.
const readyVariable = "_CELLSERVER_READY_FD"

// listens is the news that a server in the background listens; all else is an error.
const listens = "listens\n"

// detach starts this program again in the background and waits until it listens. The error is the
// report of the other process. Unlike with Redis, the caller learns of a port that is in use or a
// directory that does not exist.
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
	cmd.ExtraFiles = []*os.File{tell} // which begin at 3
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

// detached returns the writer for the report that the server listens, or for its errors until
// then, in a process that detach has started; nil in any other.
func detached() *os.File {
	if os.Getenv(readyVariable) == "" {
		return nil
	}
	_ = os.Unsetenv(readyVariable) // it is a valid name
	return os.NewFile(3, "ready")
}
