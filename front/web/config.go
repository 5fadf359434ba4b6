package web

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/cellserver/cellserver/front/descriptors"
	"github.com/cellserver/cellserver/front/headers"
	"github.com/cellserver/cellserver/front/login"
)

// Caller runs the commands of one client. Any goroutine may call it.
type Caller interface {
	// Do runs commands, which are arrays of RESP one after another, and appends their replies in RESP2 to out. replies
	// is the number of replies. Do returns when all of them have arrived. An error means that the client has been
	// disconnected; the commands may or may not have run.
	Do(commands []byte, replies int, out []byte) ([]byte, error)
	// Login logs the client in as the user. It is called before the first Do and, after an error, before the next Do.
	// An error that may be shown to the client is a resp.Error.
	Login(user string) error
	// Close ends the client.
	Close()
}

// Peer describes a client of the server that stands for a user at the other end of a connection.
type Peer struct {
	// Remote and Local are the addresses of the connection.
	Remote, Local net.Addr
	// Gone is called if the server closes the client, but not after a call of Close.
	Gone func()
	// Kept, unless nil, returns the number of bytes that the connection takes in addition to its clients. Any goroutine
	// may call it.
	Kept func() int64
}

// Limit describes one clause of limits.
type Limit struct {
	// Window is the length of the window; 0 if the clause has no window, or a window of the
	// calendar.
	Window time.Duration
	// Concurrent says that the clause limits concurrency, and Unlimited that the clause limits
	// nothing.
	Concurrent, Unlimited bool
}

// Config has the parts that a [Server] uses and the settings of its options.
type Config struct {
	// Open opens a client of the server. Each connection gets one when it is accepted, and more if it has several
	// users. The error of a client that is refused is a resp.Error; a connection whose first client is refused is
	// closed. Required.
	Open func(Peer) (Caller, error)
	// Door checks the passwords of users. Required.
	Door *login.Door
	// Certified returns the user of a client certificate that was verified. ok is false if there is none. It is
	// required with TLS.
	Certified func(*tls.ConnectionState) (user string, ok bool)
	// User returns the user of requests without credentials. ok is false if requests need
	// credentials. Required.
	User func() (name string, ok bool)
	// Limits appends the clauses of the limits that apply to key under policy to dst. blocked says that a block
	// applies. known is false if there is no such policy. Required.
	Limits func(policy, key []byte, dst []Limit) (limits []Limit, blocked, known bool)
	// Service answers requests of Envoy's rate limit service; nil means that the port does not serve them.
	Service *descriptors.Service
	// NotReady returns why Service cannot answer requests of the user, or "" if it can. The user "" stands for requests with
	// neither credentials nor a certificate of a user. It is required with Service.
	NotReady func(user string) string
	// Style says which header fields answers have.
	Style headers.Style
	// Gateway is the kind of gateway that sends checks. Trusted are the networks of proxies whose
	// header fields are believed.
	Gateway Gateway
	Trusted []netip.Prefix
	// TLS is the configuration for TLS; nil means that the port does not use TLS.
	TLS *tls.Config
	// Log receives messages for operators; nil discards them.
	Log *slog.Logger
}

// These are the bounds of the resources that clients of the port can use.
const (
	// MaxHeader and MaxBody are the maximum lengths of the header of a request, with its path, and of the body
	// of a call, in bytes.
	MaxHeader = 16 << 10
	MaxBody   = 64 << 10
	// MaxParts is the maximum number of parts in the key of a check.
	MaxParts = 16
)
