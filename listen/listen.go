// Package listen opens the listeners of a server: TCP ports, Unix sockets and inherited sockets.
//
// [TCP] and [Unix] open sockets as Redis does for its options bind and unixsocket. [Inherited]
// returns the listeners that a service manager has passed to the process. The package reads no
// options of the server.
package listen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
)

// Options say which TCP ports to open.
type Options struct {
	// Addresses are values of the option bind of Redis: names and addresses of this machine, "*"
	// and "::*". If an address begins with "-", it is no error that this machine does not have it.
	Addresses []string
	Port      string // number of the port
	// Backlog is the maximum number of connections that wait in the kernel until they are accepted;
	// 0 means as many as the operating system permits.
	Backlog int
	// Open opens a port; nil uses package net.
	Open func(network, address string) (net.Listener, error)
}

// TCP opens the port on all addresses of o. It is an error if one of them cannot be opened, except
// for a missing address with "-", or if none of them exists on this machine. On an error TCP has
// closed all listeners, and opened is nil.
func TCP(o Options) (opened []net.Listener, err error) {
	defer func() {
		if err != nil {
			for _, l := range opened {
				err = errors.Join(err, l.Close())
			}
			opened = nil
		}
	}()
	for _, a := range o.Addresses {
		address, optional := strings.CutPrefix(a, "-")
		network, host := bindNetwork(address)
		l, err := o.open(network, net.JoinHostPort(host, o.Port))
		if err != nil {
			if optional && missingAddress(err) {
				continue
			}
			return opened, fmt.Errorf("listening on %s: %w", a, err)
		}
		opened = append(opened, l)
		if tcp, ok := l.(*net.TCPListener); ok && o.Backlog > 0 {
			if err := setBacklog(tcp, o.Backlog); err != nil {
				return opened, fmt.Errorf("setting the backlog of %s: %w", a, err)
			}
		}
	}
	if len(opened) == 0 {
		return nil, fmt.Errorf("listening on %s: none of the addresses exists here", strings.Join(o.Addresses, " "))
	}
	return opened, nil
}

// open opens a TCP port, by o.Open if that is set. It uses plain TCP: with Multipath TCP, which Go
// prefers, accepted connections do not inherit the options of the listener.
func (o *Options) open(network, address string) (net.Listener, error) {
	if o.Open != nil {
		return o.Open(network, address)
	}
	c := &net.ListenConfig{}
	c.SetMultipathTCP(false)
	return c.Listen(context.Background(), network, address)
}

// bindNetwork returns the network and the host on which to listen for an address of the option
// bind. As in Redis, "*" stands for every IPv4 address and "::*" for every IPv6 address. IPv6
// sockets accept no IPv4 connections, so that bind may have both.
func bindNetwork(address string) (network, host string) {
	switch {
	case address == "*":
		return "tcp4", ""
	case address == "::*":
		return "tcp6", "::"
	case strings.Contains(address, ":"):
		return "tcp6", address
	case net.ParseIP(address) != nil:
		return "tcp4", address // the network tcp would make Go take 0.0.0.0 for all addresses of both families
	}
	return "tcp", address
}

// missingAddress reports whether err means that this machine lacks the address or its address
// family.
func missingAddress(err error) bool {
	return errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT)
}

// Unix opens a Unix socket at path. On Unix systems the socket is created without permissions for
// other users, and gets the permissions mode afterwards, so that a process without permission cannot
// connect in between (the class of CVE-2023-45145). Unix replaces a socket at path that no server
// uses, such as one left over from a crash. If a server uses it, Unix returns an error.
func Unix(path string, mode os.FileMode) (l net.Listener, err error) {
	if conn, err := net.Dial("unix", path); err == nil {
		return nil, errors.Join(fmt.Errorf("listening on %s: another server is there", path), conn.Close())
	} else if errors.Is(err, syscall.ECONNREFUSED) && isSocket(path) {
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("removing the socket of a dead server: %w", err)
		}
	}
	err = withUmask(func() (err error) {
		l, err = (&net.ListenConfig{}).Listen(context.Background(), "unix", path)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", path, err)
	}
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(fmt.Errorf("setting the permissions of %s: %w", path, err), l.Close())
	}
	return l, nil
}

// isSocket reports whether the file at path is a socket. A regular file that was named by mistake
// refuses connections like a socket without a server, but must not be removed.
func isSocket(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&os.ModeSocket != 0
}
