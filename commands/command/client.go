package command

import (
	"net"
	"sync/atomic"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// DefaultUser is the one user there is.
const DefaultUser = "default"

// HostOf is the address that failed attempts are charged to: without the port, so
// that a new connection is no new chance.
func HostOf(p transport.Peer) string {
	if tcp, ok := p.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.IP.String()
	}
	return UnixHost
}

// UnixHost stands for all who come by a unix socket.
const UnixHost = "unix"

// Client is what commands and other sessions may know of a connection. Fields without a
// note belong to the goroutine that feeds it.
type Client struct {
	Session   any // the session, which only package session looks at
	Server    *Server
	Peer      transport.Peer
	Id        int64
	Created   limit.Instant
	Proto     int  // 2 or 3
	Authed    bool // has authenticated, or came when that was not needed
	Reply     replyMode
	Spent     int // bytes in and out before authentication
	Closing   bool
	Exclusive bool // a transaction or script is running: nothing may park
	// ProxyOf is the client for which this one acts, whose command runs on another goroutine;
	// nil for a client of its own.
	ProxyOf *Client
	Beside  bool // a proxy that is not exclusive: nothing may park, and nothing is locked
	Marks   Mark
	// Read by other goroutines: CLIENT LIST, the janitor.
	Db       atomic.Int32
	Protocol atomic.Int32 // proto, for the others
	Locked   atomic.Int64 // instant since which authentication is due, 0 if it is not
	Killed   atomic.Bool
	Spared   atomic.Bool              // CLIENT NO-EVICT ON
	Self     atomic.Pointer[identity] // nil: none was given; set by the feeding goroutine only
	// Told says that the client is told of changes that it or another one tracks. Once it
	// is set it stays. Subscriptions is how many it has, of all kinds.
	Told          atomic.Bool
	Subscriptions atomic.Int32
	states        atomic.Pointer[[]clientState] // of the groups: see Slot
}

// Mark is a set of what is so rare of a client that commands ask for all of it at once.
type Mark uint8

const (
	// MarkQueuing says that a group looks at each command before it runs: see Hooks.Intercept.
	MarkQueuing Mark = 1 << iota
	// MarkListening says that the client has subscriptions.
	MarkListening
	// MarkTracking says that a group runs the commands: see Hooks.Run.
	MarkTracking
	// MarkCaching says that a group is told of commands that are refused: see Hooks.Rejected.
	MarkCaching
)

// Mark sets a mark, or takes it away.
func (s *Client) Mark(m Mark, set bool) {
	if set {
		s.Marks |= m
	} else {
		s.Marks &^= m
	}
}

// ListensOnly reports whether the client may run only what [Command.ListenersMay] allows: on
// RESP2 a client cannot tell a reply from a message, so one that listens asks for nothing.
func (s *Client) ListensOnly() bool { return s.Marks&MarkListening != 0 && s.Proto == 2 }

// Subscribed reports whether the client has any subscription. Any goroutine may call it.
func (s *Client) Subscribed() bool { return s.Subscriptions.Load() > 0 }

// ReadsBeside reports whether the command runs elsewhere until it is done. What it has
// read may change meanwhile, and the client be told only behind the reply, so that
// nothing is told before.
func (p *Wait) ReadsBeside() bool { return p.GiveUp == nil && !p.Again && p.Slice == nil }

// Hush takes back what was written since mark when CLIENT REPLY says so.
func (s *Client) Hush(w *resp.Writer, mark int) {
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

// Addr is the client's end of the connection as CLIENT LIST shows it. It is asked
// for too rarely to be kept. Any goroutine may call it, as laddr, the server's end.
func (s *Client) Addr() string { return endpoint(s.Peer.RemoteAddr(), s.Peer.LocalAddr()) }

func (s *Client) Laddr() string { return endpoint(s.Peer.LocalAddr(), nil) }

// endpoint formats an address; that of a unix socket is its path and port 0, and
// a nameless one borrows the path of the other end.
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

// identity is what a client calls itself. It is replaced, never changed.
type identity struct{ Name, LibName, LibVer string }

// replyMode is the state of CLIENT REPLY.
type replyMode uint8

const (
	ReplyOn replyMode = iota
	ReplyOff
	ReplySkipNext // CLIENT REPLY SKIP itself is being answered with silence
	replySkip     // the command after it is
)

// ID is the number that CLIENT ID answers; it is never used twice.
func (s *Client) ID() int64 { return s.Id }

// Kill ends the session: at its next Feed if it can be fed, at once if its peer
// does not read what it was sent. Any goroutine may call it.
func (s *Client) Kill() {
	s.Killed.Store(true)
	s.Peer.Abort()
}

// Name returns the name that CLIENT SETNAME gave. Any goroutine may call it.
func (s *Client) Name() string { return s.Identity().Name }

// Identity returns what the client calls itself. Any goroutine may call it.
func (s *Client) Identity() identity {
	if n := s.Self.Load(); n != nil {
		return *n
	}
	return identity{}
}

// SetName is CLIENT SETNAME.
func (s *Client) SetName(name []byte) {
	n := s.Identity()
	n.Name = string(name)
	s.Identify(n)
}

// Identify sets what the client calls itself. Most say nothing, and cost nothing.
func (s *Client) Identify(n identity) {
	if n == (identity{}) {
		s.Self.Store(nil)
		return
	}
	s.Self.Store(&n)
}

// Selected is the database of the session.
func (s *Client) Selected() int { return int(s.Db.Load()) }

// Lock makes the session authenticate again before it may go on.
func (s *Client) Lock(now limit.Instant) {
	s.Authed, s.Spent = false, 0
	s.Locked.Store(int64(now))
}

// Unlock admits the session, whatever becomes of the password.
func (s *Client) Unlock() {
	s.Authed = true
	s.Locked.Store(0)
}

// Admitted reports whether the session may run commands.
func (s *Client) Admitted() bool { return s.Authed || !s.Server.PasswordSet() }

// SetProtocol switches between RESP2 and RESP3.
func (s *Client) SetProtocol(proto int) {
	s.Proto = proto
	s.Protocol.Store(int32(proto))
}

// Reset returns the client to the state of a new connection (RESET), but for what groups
// keep.
func (s *Client) Reset(now limit.Instant) {
	s.SetProtocol(2)
	s.Reply = ReplyOn
	s.Db.Store(0)
	s.SetName(nil)
	switch {
	case !s.Server.PasswordSet():
		s.Unlock()
	case s.Authed:
		s.Lock(now)
	}
}
