package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/cellserver/cellserver/front/descriptors"
	"github.com/cellserver/cellserver/front/drain"
	"github.com/cellserver/cellserver/front/use"
	"github.com/cellserver/cellserver/listen"
)

// A connection is closed after these times: until the header of a request is complete, until the body is complete,
// until the response has been sent, and between two requests.
const (
	headerTime = 5 * time.Second
	bodyTime   = 10 * time.Second
	answerTime = 30 * time.Second
	idleTime   = 2 * time.Minute
)

// mostHeader is the length of a header, in bytes, beyond which a connection is closed without an answer to its
// requests. Between [MaxHeader] and mostHeader, the request gets an error reply and the connection remains open:
// gateways pass the headers of several clients on over one connection, and have bounds below mostHeader.
const mostHeader = 64 << 10

// maxStreams is the maximum number of requests at once on a connection of HTTP/2.
const maxStreams = 250

// maxFrame is the maximum length of a frame of HTTP/2, in bytes: the smallest bound that RFC 9113 allows. A frame is
// read as a whole, so the bound is also the memory that a connection can occupy with a frame.
const maxFrame = 16 << 10

// maxUnread is the maximum number of bytes of bodies that a connection of HTTP/2 has sent and no request has read.
const maxUnread = 4 * MaxBody

// These are the numbers of bytes that a request takes in memory: a fixed part, and a part for each byte of its header
// and of its body.
const (
	requestKept  = 8 << 10
	headerCopies = 3
	bodyCopies   = 3
)

// Server is an HTTP port for decisions: see [New].
type Server struct {
	Config
	bound   *listen.Connections // which bounds nothing: Open does
	calls   drain.Calls
	counts  counts
	http    http.Server
	scratch sync.Pool // of *scratch
}

// New returns a server. It serves no requests until Serve is called.
func New(c Config) *Server {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		Config: c, bound: listen.NewConnections(0),
		scratch: sync.Pool{New: func() any { return new(scratch) }},
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	s.http = http.Server{
		Handler:   http.HandlerFunc(s.serve),
		Protocols: &protocols,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams, MaxReadFrameSize: maxFrame, MaxReceiveBufferPerStream: MaxBody,
			MaxReceiveBufferPerConnection: maxUnread, WriteByteTimeout: answerTime,
		},
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       bodyTime,
		WriteTimeout:      answerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    mostHeader,
		// OPTIONS * gets the same answer as any other path that does not exist.
		DisableGeneralOptionsHandler: true,
		ConnContext:                  s.bound.Context,
		TLSConfig:                    c.TLS,
		// The messages of package http are about errors of clients, so clients could fill the log
		// with them.
		ErrorLog: log.New(discard{}, "", 0),
	}
	return s
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// Serve accepts connections from l until Shutdown, and then returns nil. If accepting fails before
// that, it returns the error.
func (s *Server) Serve(l net.Listener) error {
	l = s.bound.Bound(&accept{l, s.Open})
	serve := s.http.Serve
	if s.TLS != nil {
		serve = func(l net.Listener) error { return s.http.ServeTLS(l, "", "") }
	}
	if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving http-port: %w", err)
	}
	return nil
}

// CloseIdle closes the connection that has been idle for longest, and ends its clients. A connection is idle while none of its
// requests is being answered; the body of a call has to be complete before. It returns false if no connection is idle. Any goroutine
// may call it.
func (s *Server) CloseIdle() bool { return s.bound.CloseIdle() }

// Shutdown stops accepting connections and waits for requests that are being answered. It closes the connections that are left when
// there has been no such request for a second, or when ctx ends. The error comes from closing connections.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Door.Stop()
	ctx, stop := s.calls.Context(ctx)
	defer stop()
	if err := s.http.Shutdown(ctx); err != nil {
		return s.http.Close() //nolint:wrapcheck // of listeners that are closed already
	}
	return nil
}

// serve answers a request. It also replies to a request whose handler panics.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.answering(r.Context(), true)
	defer s.answering(r.Context(), false)
	conn, takes := connectionOf(r.Context()), keptFor(r)
	conn.kept.Add(takes)
	defer conn.kept.Add(-takes)
	defer s.recovered(w)
	protect(w.Header())
	if r.ProtoMajor == 1 {
		// Without full duplex, the answer to a check would wait for the body, which the client of the gateway may send
		// slowly.
		_ = http.NewResponseController(w).EnableFullDuplex() // there is no error, because every connection of HTTP/1.1 supports full duplex
	}
	switch path := rawPath(r.URL); {
	case path == usePath:
		s.use(w, r)
	case strings.HasPrefix(path, checkPath):
		s.check(w, r, path)
	case path == jsonPath && s.Service != nil:
		s.descriptors(w, r)
	case path == healthPath && s.Service != nil:
		s.health(w, r)
	case s.serveLimits(w, r, path):
	default:
		s.refuse(w, http.StatusNotFound, "there is nothing at this path")
	}
}

// answering notes that a request with the context ctx begins to be answered if yes is true, and otherwise that it no longer is.
func (s *Server) answering(ctx context.Context, yes bool) {
	s.bound.Serving(ctx, yes)
	if yes {
		s.calls.Begin()
	} else {
		s.calls.End()
	}
}

// recovered replies to a request whose handler has panicked. The reply does not contain the panic
// value, which may hold a key.
func (s *Server) recovered(w http.ResponseWriter) {
	if recover() != nil {
		s.Log.Error("a request to http-port failed on an internal error")
		s.refuse(w, http.StatusInternalServerError, "internal error")
	}
}

// rawPath returns the path of a request without decoding its escapes.
func rawPath(u *url.URL) string {
	if u.RawPath != "" {
		return u.RawPath
	}
	return u.EscapedPath()
}

// user returns the name of the user of a request: the name in the certificate, or else in the credentials if login is
// set, or else in the option http-user. proven says that the client has proven that it is the user. If ok is false,
// user has sent the response.
func (s *Server) user(w http.ResponseWriter, r *http.Request, login bool) (name string, proven, ok bool) {
	if name, ok = s.certified(r.TLS); ok {
		return name, true, true
	}
	if login && r.Header.Get("Authorization") != "" {
		return s.login(w, r)
	}
	if name, ok = s.User(); !ok {
		s.refuse(w, http.StatusUnauthorized, "a user and a password of the server's ACL are needed")
	}
	return name, false, ok
}

// certified returns the user of a certificate that was verified.
func (s *Server) certified(is *tls.ConnectionState) (user string, ok bool) {
	if is == nil || len(is.VerifiedChains) == 0 {
		return "", false
	}
	return s.Certified(is)
}

// login returns the user of the credentials of a request. If the user needs no password, the login proves nothing: then
// proven is false, and the user must be the one of requests without credentials. If ok is false, login has sent the
// response.
func (s *Server) login(w http.ResponseWriter, r *http.Request) (name string, proven, ok bool) {
	name, password, ok := r.BasicAuth()
	if !ok {
		s.refuse(w, http.StatusUnauthorized, "Authorization has another scheme than Basic")
		return "", false, false
	}
	address, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		address = r.RemoteAddr
	}
	u, refused := s.Door.Login(r.Context(), name, password, address)
	switch {
	case refused:
		w.Header().Set("Retry-After", "1")
		s.refuse(w, http.StatusTooManyRequests, "too many failed logins from this address")
		return "", false, false
	case u == nil:
		s.refuse(w, http.StatusUnauthorized, "the password is wrong, or the user does not exist or is off")
		return "", false, false
	case !u.Rules().NoPass:
		return u.Name, true, true
	}
	if own, ok := s.User(); !ok || own != u.Name {
		s.refuse(w, http.StatusUnauthorized, "the user needs no password, and is not that of http-user")
		return "", false, false
	}
	return u.Name, false, true
}

// headerSize returns the length of the header of a request with its path, in bytes.
func headerSize(r *http.Request) int {
	n := len(r.Method) + len(r.RequestURI) + len(r.Host)
	for name, values := range r.Header {
		for _, value := range values {
			n += len(name) + len(value) + len(": \r\n")
		}
	}
	return n
}

// keptFor returns the number of bytes that a request takes while it is answered.
func keptFor(r *http.Request) int64 {
	body := r.ContentLength
	if body < 0 || body > MaxBody {
		body = MaxBody
	}
	return requestKept + headerCopies*int64(headerSize(r)) + bodyCopies*body
}

// scratch is memory for the answer to one request, which later requests reuse.
type scratch struct {
	in, out, key []byte
	limits       []Limit
	reply        use.Answer
	answer       answer
	call         descriptors.Call
}

// kept is the maximum size in bytes of a scratch that is kept for reuse.
const kept = 8 << 10

// ask runs the call c as the user, and passes the answer to respond. The answer is valid until respond returns.
func (s *Server) ask(r *http.Request, user string, c *use.Call, m *scratch) (*answer, error) {
	caller, err := connectionOf(r.Context()).caller(user, s.Open)
	if err != nil {
		return nil, err
	}
	m.in = c.AppendTo(m.in[:0])
	if m.out, err = caller.Do(m.in, 1, m.out[:0]); err != nil {
		return nil, fmt.Errorf("the client was disconnected: %w", err)
	}
	rest, err := m.reply.Read(m.out)
	if err == nil && len(rest) > 0 {
		err = use.ErrReply
	}
	if err != nil {
		return nil, err //nolint:wrapcheck // a resp.Error becomes a status
	}
	m.answer.decided(c, &m.reply)
	var blocked, known bool
	m.limits, blocked, known = s.Limits(c.Policy, c.Key, m.limits[:0])
	m.answer.describe(m.limits, blocked, known)
	return &m.answer, nil
}

// borrow returns memory for a request, and giveBack returns it to the pool.
func (s *Server) borrow() *scratch { return s.scratch.Get().(*scratch) }

func (s *Server) giveBack(m *scratch) {
	if cap(m.in)+cap(m.out)+cap(m.key)+m.call.Bytes() <= kept {
		s.scratch.Put(m)
	}
}
