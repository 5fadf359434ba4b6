package loadgen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Target is a server to drive.
type Target struct {
	// Name is the target's name in reports.
	Name string
	// Network is "tcp" or "unix". Address is the address to dial.
	Network, Address string
	// User and Password authenticate every connection if Password is not empty.
	User, Password string
	// Database is selected if it is not 0.
	Database int
	// RESP3 switches connections to RESP3.
	RESP3 bool
	// PID is the server's process. 0 means that it is looked up by the address.
	PID int
	// Dialer opens connections; nil means the dialer of package net. Connections of a Dialer need
	// not have a descriptor, so goroutines drive them unless Options.Driver says otherwise.
	Dialer func(ctx context.Context, network, address string) (net.Conn, error)
}

// ParseAddress parses host:port, a port alone, the path of a Unix socket, or a URL
// (redis://[[user]:password@]host:port[/db], unix:path) into t. Any other text is an error.
func (t *Target) ParseAddress(text string) error {
	switch {
	case strings.HasPrefix(text, "redis://"):
		return t.parseURL(text)
	case strings.HasPrefix(text, "unix:"):
		t.Network, t.Address = "unix", strings.TrimPrefix(strings.TrimPrefix(text, "unix:"), "//")
	case strings.ContainsRune(text, '/'):
		t.Network, t.Address = "unix", text
	case isDigits(text):
		t.Network, t.Address = "tcp", net.JoinHostPort("127.0.0.1", text)
	default:
		_, port, err := net.SplitHostPort(text)
		if err != nil {
			return fmt.Errorf("reading the address %q: %w", text, err)
		}
		if !isDigits(port) {
			return fmt.Errorf("reading the address %q: the port is not a number", text)
		}
		t.Network, t.Address = "tcp", text
	}
	return nil
}

func (t *Target) parseURL(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return errors.New("reading the address: it is not a URL") // the text of the error may contain a password
	}
	t.Network, t.Address = "tcp", u.Host
	if u.Port() == "" {
		t.Address = net.JoinHostPort(u.Hostname(), "6379")
	}
	if u.User != nil {
		t.User = u.User.Username()
		t.Password, _ = u.User.Password()
	}
	if db := strings.Trim(u.Path, "/"); db != "" {
		if t.Database, err = strconv.Atoi(db); err != nil {
			return errors.New("reading the address: the database is not a number")
		}
	}
	return nil
}

// Dial opens a connection that is ready for commands: authenticated, with protocol and database
// selected. After an error the connection is closed.
func (t *Target) Dial(ctx context.Context) (*Session, error) {
	dial := t.Dialer
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(ctx, t.Network, t.Address)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", t.Name, err)
	}
	s := &Session{conn: conn}
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline) // a connection that refuses the deadline fails below
	}
	if err := t.greet(s); err != nil {
		conn.Close()
		return nil, fmt.Errorf("opening a session with %s: %w", t.Name, err)
	}
	_ = conn.SetDeadline(time.Time{})
	return s, nil
}

// greet authenticates, switches the protocol and selects the database, as t says.
func (t *Target) greet(s *Session) error {
	var greetings [][]string
	if t.Password != "" {
		auth := []string{"AUTH"}
		if t.User != "" {
			auth = append(auth, t.User)
		}
		greetings = append(greetings, append(auth, t.Password))
	}
	if t.RESP3 {
		greetings = append(greetings, []string{"HELLO", "3"})
	}
	if t.Database != 0 {
		greetings = append(greetings, []string{"SELECT", strconv.Itoa(t.Database)})
	}
	for _, words := range greetings {
		if _, err := s.Do(words...); err != nil {
			return fmt.Errorf("%s: %w", words[0], err)
		}
	}
	return nil
}
