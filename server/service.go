package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/resp"
)

// notifySocket is the environment variable that has the address of the socket on which systemd
// expects notifications.
const notifySocket = "NOTIFY_SOCKET"

// ready is the notification that the server serves clients. It is also sent after a reload.
const ready = "READY=1\nSTATUS=Ready to accept connections\n"

// serviceManagerOf returns the service manager that listens at the address socket. The result is
// "", which means that there is none, if socket is "" or the option supervised is no.
func serviceManagerOf(c *config.Config, socket string) serviceManager {
	if c.Value("supervised") == "no" {
		return ""
	}
	return serviceManager(socket)
}

// Background reports whether the process should continue in the background: the option daemonize is
// yes, and no service manager supervises the process. As in Redis, a supervised process stays in
// the foreground.
func Background(c *config.Config) bool {
	return c.Yes("daemonize") && serviceManagerOf(c, os.Getenv(notifySocket)) == ""
}

// tellManager sends the notification news to the service manager, if there is one. It logs a
// warning if that fails, or if news is ready and supervised is systemd but there is no service
// manager.
func (s *Server) tellManager(news string) {
	if s.manager == "" {
		if s.config.Value("supervised") == "systemd" && strings.HasPrefix(news, "READY") {
			s.log.Warn("supervised is systemd, but NOTIFY_SOCKET is not set")
		}
		return
	}
	if err := s.manager.send(news); err != nil {
		s.log.Warn("the service manager cannot be notified", "error", err)
	}
}

// serviceManager is the address of the socket of the service manager, or "" if there is none.
type serviceManager string

// send sends the notification news, as sd_notify of systemd does. Package net supports abstract
// addresses, which begin with '@'.
func (m serviceManager) send(news string) error {
	conn, err := net.Dial("unixgram", string(m))
	if err != nil {
		return fmt.Errorf("reaching the service manager: %w", err)
	}
	_, err = conn.Write([]byte(news))
	return errors.Join(err, conn.Close())
}

// writePIDFile writes the process id to the file of the option pidfile, if that is set, and sets
// s.pidFile. Like Redis, the server continues if it cannot write the file.
func (s *Server) writePIDFile() {
	path := s.config.Path("pidfile")
	if path == "" {
		return
	}
	if err := os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644); err != nil {
		s.log.Warn("the process id cannot be written", "error", err)
		return
	}
	s.pidFile = path
}

func (s *Server) removePIDFile() error {
	if s.pidFile == "" {
		return nil
	}
	if err := os.Remove(s.pidFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the file of the process id: %w", err)
	}
	return nil
}

// checkDir returns an error, with the text of Redis, if the process cannot change to the directory
// of the option dir.
func checkDir(c *config.Config) error {
	dir := c.Value("dir")
	var err error = syscall.ENOENT // the error of chdir for an empty path
	if dir != "" {
		// The dot at the end makes Stat need the permission to enter the directory, as chdir does.
		_, err = os.Stat(dir + string(os.PathSeparator) + ".")
	}
	if err != nil {
		return c.At("dir", fmt.Errorf("Can't chdir to '%s': %s", dir, resp.Strerror(err))) //nolint:staticcheck // the words of Redis
	}
	return nil
}
