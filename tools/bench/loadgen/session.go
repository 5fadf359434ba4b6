package loadgen

import (
	"errors"
	"fmt"
	"net"
	"strings"
)

// Session is one connection for single commands. It must not be used concurrently.
type Session struct {
	conn net.Conn
	in   []byte
}

// Answer is the reply to a single command.
type Answer struct {
	// Text is the content of a string reply, Integer the value of an integer reply.
	Text    string
	Integer int64
}

// Do sends one command and waits for its reply. It returns an error reply as an error.
func (s *Session) Do(words ...string) (Answer, error) {
	if err := s.Send(words...); err != nil {
		return Answer{}, err
	}
	return s.Receive()
}

// Send writes one command. [Session.Receive] reads its reply.
func (s *Session) Send(words ...string) error {
	b := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, w := range words {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(w), w)
	}
	_, err := s.conn.Write(b)
	return err
}

// Receive waits for the next reply. It skips push messages, and returns an error reply as an error.
func (s *Session) Receive() (Answer, error) {
	var r reply
	buf := make([]byte, 4096)
	for {
		n, err := scanReply(s.in, &r)
		if err != nil {
			return Answer{}, err
		}
		if n > 0 {
			a := Answer{Text: string(r.text), Integer: r.ints[0]}
			push, refused := r.isPush(), r.isError()
			s.in = s.in[:copy(s.in, s.in[n:])]
			switch {
			case push:
				continue
			case refused:
				return Answer{}, errors.New(a.Text)
			}
			return a, nil
		}
		read, err := s.conn.Read(buf)
		s.in = append(s.in, buf[:read]...)
		if err != nil && read == 0 {
			return Answer{}, fmt.Errorf("waiting for a reply: %w", err)
		}
	}
}

// Close ends the session.
func (s *Session) Close() { s.conn.Close() }

// Addr returns the address of the server's end of the connection.
func (s *Session) Addr() net.Addr { return s.conn.RemoteAddr() }

// Version returns the server's name and version from INFO, such as "redis 7.0.15", or "" if INFO
// fails or does not contain them.
func (s *Session) Version() string {
	a, err := s.Do("INFO", "server")
	if err != nil {
		return ""
	}
	fields := make(map[string]string)
	for line := range strings.Lines(a.Text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	for _, name := range []string{"cellserver", "valkey", "redis"} {
		if v := fields[name+"_version"]; v != "" {
			return name + " " + v
		}
	}
	return ""
}
