package command

import (
	"net"
	"sync/atomic"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// Client is the part of a connection's state that commands and other sessions may use. A field
// belongs to the goroutine that feeds the client, unless its comment says otherwise.
type Client struct {
	Owner     any // the session of the client; only package session uses it
	Server    *Server
	Peer      transport.Peer
	ID        int64
	Created   limit.Instant
	Proto     int  // version of RESP: 2 or 3
	Authed    bool // the client has authenticated, or has connected while no login was required
	Reply     ReplyMode
	Spent     int // bytes that the client has sent and received before authentication
	Closing   bool
	Exclusive bool // a transaction or script is running: the client must not be parked
	// ProxyOf is the client for which this one acts while its command runs on another goroutine;
	// nil for a client that is not a proxy.
	ProxyOf    *Client
	Background bool // a proxy that is not exclusive: it must not be parked, and has no locks
	Marks      Mark
	// User is the authenticated user, or the user default before authentication. Only the feeding
	// goroutine sets it.
	User atomic.Pointer[acl.User]
	// Other goroutines, such as one that runs CLIENT LIST or the janitor, also read the fields from
	// Database to Subscriptions.
	Database atomic.Int32
	Protocol atomic.Int32 // a copy of Proto that other goroutines may read
	Locked   atomic.Int64 // the instant from which the time for authentication runs; 0 if the client need not authenticate
	Killed   atomic.Bool
	Spared   atomic.Bool              // set by CLIENT NO-EVICT ON: maxmemory-clients does not close the client
	Self     atomic.Pointer[Identity] // the names that the client gave; nil if it gave none; set by the feeding goroutine only
	// Invalidated says that the client receives invalidations of keys that it or another client
	// tracks. Once Invalidated is set, it stays set. Subscriptions is the number of the client's
	// subscriptions: to channels, patterns and shard channels.
	Invalidated   atomic.Bool
	Subscriptions atomic.Int32
	clientParts
}

// HostOf returns the address to which failed login attempts of the peer p are charged: its IP
// address, or [UnixHost]. The address has no port, so that a new connection does not reset the
// count.
func HostOf(p transport.Peer) string {
	if tcp, ok := p.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.IP.String()
	}
	return UnixHost
}

// UnixHost is the address to which failed login attempts of all clients on unix sockets are
// charged.
const UnixHost = "unix"

// Mark sets the mark m of the client if set is true, and clears m otherwise.
func (s *Client) Mark(m Mark, set bool) {
	if set {
		s.Marks |= m
	} else {
		s.Marks &^= m
	}
}

// ListensOnly reports whether the client may run only the commands for which [Command.ListenersMay]
// is true. In RESP2 a client cannot distinguish a reply from a message, so a subscriber sends no
// other commands.
func (s *Client) ListensOnly() bool { return s.Marks&MarkListening != 0 && s.Proto == 2 }

// Subscribed reports whether the client has any subscription. Any goroutine may call it.
func (s *Client) Subscribed() bool { return s.Subscriptions.Load() > 0 }

// SuppressReply removes what was written to w since mark if CLIENT REPLY says so. In the mode SKIP
// it also advances the mode: the reply of CLIENT REPLY SKIP itself is removed, then the reply of
// the next command.
func (s *Client) SuppressReply(w *resp.Writer, mark int) {
	switch s.Reply {
	case ReplyOn:
		return
	case ReplySkipNext:
		s.Reply = replySkip
	case replySkip:
		s.Reply = ReplyOn
	}
	w.Cut(mark)
}

// Addr returns the client's end of the connection as CLIENT LIST shows it. Any goroutine may call
// it.
func (s *Client) Addr() string { return endpoint(s.Peer.RemoteAddr(), s.Peer.LocalAddr()) }

// Laddr returns the server's end of the connection as CLIENT LIST shows it. Any goroutine may call
// it.
func (s *Client) Laddr() string { return endpoint(s.Peer.LocalAddr(), nil) }

// endpoint formats the address a. A unix socket is shown as its path and port 0. If a has no path,
// the path of other, the opposite end, is shown; other may be nil. A nil address is shown as "?:0".
func endpoint(a, other net.Addr) string {
	if a == nil {
		return "?:0"
	}
	if a.Network() != "unix" {
		return a.String()
	}
	path := a.String()
	if (path == "" || path == "@") && other != nil {
		path = other.String()
	}
	return path + ":0"
}

// Kill ends the client's session: it sets Killed, which the next Feed checks, and aborts the
// connection, because Feed is not called for a client that does not read its output. Any goroutine
// may call it.
func (s *Client) Kill() {
	s.Killed.Store(true)
	s.Peer.Abort()
}

// Name returns the name that CLIENT SETNAME set. Any goroutine may call it.
func (s *Client) Name() string { return s.Identity().Name }

// Identity returns the names that the client gave for itself and for its library; the zero value if
// it gave none. Any goroutine may call it.
func (s *Client) Identity() Identity {
	if n := s.Self.Load(); n != nil {
		return *n
	}
	return Identity{}
}

// SetName sets the name of the client (CLIENT SETNAME); an empty name removes it. Only the goroutine
// that feeds the client may call it.
func (s *Client) SetName(name []byte) {
	n := s.Identity()
	n.Name = string(name)
	s.Identify(n)
}

// Identify replaces the names of the client and its library by n. A client without names takes no
// memory for them. Only the goroutine that feeds the client may call it.
func (s *Client) Identify(n Identity) {
	if n == (Identity{}) {
		s.Self.Store(nil)
		return
	}
	s.Self.Store(&n)
}

// Selected returns the index of the client's selected database. Any goroutine may call it.
func (s *Client) Selected() int { return int(s.Database.Load()) }

// Lock requires the client to authenticate again before it may run more commands. The time limit
// for that begins at now.
func (s *Client) Lock(now limit.Instant) {
	s.Authed, s.Spent = false, 0
	s.Locked.Store(int64(now))
}

// Login makes u the user of the client and marks the client as authenticated. A later change of u's
// password does not affect the client.
func (s *Client) Login(u *acl.User) {
	s.User.Store(u)
	s.Authed = true
	s.Locked.Store(0)
}

// LoginAs calls Login with the user that find returns, and returns true. If find returns false, the
// client keeps its user, and LoginAs returns false. If users were deleted or replaced meanwhile,
// LoginAs undoes the login and calls find again: the goroutine that closes the clients of those
// users may have checked this client before it had the user.
func (s *Client) LoginAs(find func() (u *acl.User, ok bool)) bool {
	user, authed, locked := s.User.Load(), s.Authed, s.Locked.Load()
	for {
		before := s.Server.Users.Closings()
		u, ok := find()
		if !ok {
			return false
		}
		if s.Login(u); s.Server.Users.Closings() == before {
			return true
		}
		s.User.Store(user)
		s.Authed = authed
		s.Locked.Store(locked)
	}
}

// Admitted reports whether the client may run commands, because it has authenticated or because the
// server does not require a login.
func (s *Client) Admitted() bool { return s.Authed || !s.Server.Users.NeedsLogin() }

// UserName returns the name of the client's user. Any goroutine may call it.
func (s *Client) UserName() string { return s.User.Load().Name }

// SetProtocol switches the client to the version proto of RESP: 2 or 3.
func (s *Client) SetProtocol(proto int) {
	s.Proto = proto
	s.Protocol.Store(int32(proto))
}

// Reset returns the client to the state of a new connection (RESET): RESP2, replies on, database 0,
// no name, and the user default. If the server requires a login, a client that was authenticated
// has to authenticate again, and the time limit begins at now. The state that groups keep for the
// client is not reset: see [Server.Reset].
func (s *Client) Reset(now limit.Instant) {
	s.SetProtocol(2)
	if s.Reply != replySkip { // replySkip suppresses even the reply of RESET, and then ends
		s.Reply = ReplyOn
	}
	s.Database.Store(0)
	s.SetName(nil)
	switch users := s.Server.Users; {
	case !users.NeedsLogin():
		s.Login(users.Default)
	case s.Authed:
		s.User.Store(users.Default)
		s.Lock(now)
	}
}

// Registry has all clients.
type Registry interface {
	// CountClients returns the number of clients except replicas, and how many of them are blocked.
	CountClients() (all, blocked int64)
	// Client returns the client with that ID, or nil. Clients returns all clients in the order of
	// their arrival.
	Client(id int64) *Client
	Clients() []*Client
	// Activity returns what the client cl is doing. Any goroutine may call it.
	Activity(cl *Client) Activity
}
