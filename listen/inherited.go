package listen

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// firstInherited is the first file descriptor that a service manager passes, SD_LISTEN_FDS_START of
// systemd.
const firstInherited = 3

// inheritedVariables are the environment variables that describe the passed file descriptors.
var inheritedVariables = []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}

// Socket is a listening socket that a service manager has passed to this process.
type Socket struct {
	net.Listener
	// Name is the name that the service manager has given to the socket, such as FileDescriptorName
	// of systemd; "" if it has given none.
	Name string
}

// Inherited returns the listening sockets that a service manager has passed to this process, as
// sd_listen_fds of systemd does. The result is nil if there are none. Inherited removes the
// variables from the environment, so a second call returns none. It is an error if a descriptor is
// not a listening socket, or if LISTEN_FDS is not a number.
func Inherited() ([]Socket, error) {
	pid, n, names := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS"), strings.Split(os.Getenv("LISTEN_FDNAMES"), ":")
	if pid != strconv.Itoa(os.Getpid()) {
		return nil, nil // the descriptors are for another process, from which this one has inherited the environment
	}
	for _, v := range inheritedVariables {
		if err := os.Unsetenv(v); err != nil {
			return nil, fmt.Errorf("inherited sockets: %w", err)
		}
	}
	count, err := strconv.Atoi(n)
	if err != nil || count < 0 {
		return nil, fmt.Errorf("inherited sockets: LISTEN_FDS is %q, no number", n)
	}
	var inherited []Socket
	for i := range count {
		l, err := inheritedSocket(firstInherited + i)
		if err != nil {
			for _, s := range inherited {
				err = errors.Join(err, s.Listener.Close())
			}
			return nil, err
		}
		s := Socket{Listener: l}
		if i < len(names) {
			s.Name = names[i]
		}
		inherited = append(inherited, s)
	}
	return inherited, nil
}

// inheritedSocket returns a listener for a file descriptor. It closes the descriptor, of which the
// listener has a duplicate. If the descriptor is not a listening socket, it returns an error and
// leaves the descriptor open, since it may belong to Go's runtime.
func inheritedSocket(descriptor int) (net.Listener, error) {
	if err := checkListens(descriptor); err != nil {
		return nil, fmt.Errorf("inherited sockets: descriptor %d: %w", descriptor, err)
	}
	f := os.NewFile(uintptr(descriptor), "socket "+strconv.Itoa(descriptor))
	if f == nil {
		return nil, fmt.Errorf("inherited sockets: there is no descriptor %d", descriptor)
	}
	l, err := net.FileListener(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("inherited sockets: descriptor %d: %w", descriptor, err)
	}
	return l, nil
}
