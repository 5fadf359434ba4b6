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
	Owner     any // whose face this is
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
	IsStandIn bool // acts for a session whose command runs elsewhere
	Beside    bool // as isStandIn, but not alone: nothing may park, and nothing is locked
	// Read by other goroutines: CLIENT LIST, the janitor.
	Db       atomic.Int32
	Protocol atomic.Int32 // proto, for the others
	Locked   atomic.Int64 // instant since which authentication is due, 0 if it is not
	Killed   atomic.Bool
	Spared   atomic.Bool              // CLIENT NO-EVICT ON
	Self     atomic.Pointer[identity] // nil: none was given; set by the feeding goroutine only
}

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
