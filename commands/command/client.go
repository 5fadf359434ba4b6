package command

import (
	"net"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

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

// SuppressReply takes back what was written since mark when CLIENT REPLY says so.
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

// Addr is the client's end of the connection as CLIENT LIST shows it. It is asked
// for too rarely to be kept. Any goroutine may call it, as laddr, the server's end.
func (s *Client) Addr() string { return endpoint(s.Peer.RemoteAddr(), s.Peer.LocalAddr()) }

// Laddr is the server's end of the connection as CLIENT LIST shows it.
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

// Kill ends the session: at its next Feed if it can be fed, at once if its peer
// does not read what it was sent. Any goroutine may call it.
func (s *Client) Kill() {
	s.Killed.Store(true)
	s.Peer.Abort()
}

// Name returns the name that CLIENT SETNAME gave. Any goroutine may call it.
func (s *Client) Name() string { return s.Identity().Name }

// Identity returns what the client calls itself. Any goroutine may call it.
func (s *Client) Identity() Identity {
	if n := s.Self.Load(); n != nil {
		return *n
	}
	return Identity{}
}

// SetName is CLIENT SETNAME.
func (s *Client) SetName(name []byte) {
	n := s.Identity()
	n.Name = string(name)
	s.Identify(n)
}

// Identify sets what the client calls itself. Most say nothing, and cost nothing.
func (s *Client) Identify(n Identity) {
	if n == (Identity{}) {
		s.Self.Store(nil)
		return
	}
	s.Self.Store(&n)
}

// Selected is the database of the session.
func (s *Client) Selected() int { return int(s.Database.Load()) }

// Lock makes the session authenticate again before it may go on.
func (s *Client) Lock(now limit.Instant) {
	s.Authed, s.Spent = false, 0
	s.Locked.Store(int64(now))
}

// Login makes the session one of u, and admits it whatever becomes of the password.
func (s *Client) Login(u *acl.User) {
	s.User.Store(u)
	s.Authed = true
	s.Locked.Store(0)
}

// LoginAs is Login as the user whom find returns, if it returns one. find is called again if
// users were deleted or replaced meanwhile: whoever closes their clients may have looked at
// this one before it was theirs.
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

// Admitted reports whether the session may run commands.
func (s *Client) Admitted() bool { return s.Authed || !s.Server.Users.NeedsLogin() }

// UserName returns the name of the user. Any goroutine may call it.
func (s *Client) UserName() string { return s.User.Load().Name }

// SetProtocol switches between RESP2 and RESP3.
func (s *Client) SetProtocol(proto int) {
	s.Proto = proto
	s.Protocol.Store(int32(proto))
}

// Reset returns the client to the state of a new connection (RESET), but for what groups
// keep.
func (s *Client) Reset(now limit.Instant) {
	s.SetProtocol(2)
	if s.Reply != replySkip { // which silences the reply of RESET itself, and ends with it
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
