package commands

import (
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// Session is what the server remembers of one connection. Fields without a note
// belong to the goroutine that feeds it; the others say who may touch them.
type Session struct {
	engine *Engine
	peer   transport.Peer
	guard  resp.Guard

	id      int64
	created limit.Instant

	proto     int  // 2 or 3
	authed    bool // has authenticated, or came when that was not needed
	reply     replyMode
	spent     int // bytes in and out before authentication
	closing   bool
	caching   bool // what CLIENT CACHING said is in force
	midMail   bool // a message has been sent in part
	exclusive bool // a transaction or script is running: nothing may park
	isStandIn bool // acts for a session whose command runs elsewhere
	beside    bool // as isStandIn, but not alone: nothing may park, and nothing is locked
	standsFor *Session
	tx        *transaction
	watched   any                    // the store's token for the keys of WATCH, nil if there are none
	watching  int                    // bytes that these take
	parked    atomic.Pointer[Parked] // set by the feeding goroutine only

	// Read by other goroutines: CLIENT LIST, the janitor.
	db       atomic.Int32
	active   atomic.Int64 // instant of the last Feed that got bytes
	partial  atomic.Int64 // instant the unfinished command began, 0 if none
	owed     *owedReplies // of the last Feed, nil without any
	protocol atomic.Int32 // proto, for the others
	lastCmd  atomic.Int32 // id of the last command, -1 before the first
	locked   atomic.Int64 // instant since which authentication is due, 0 if it is not
	killed   atomic.Bool
	overfull atomic.Bool                   // its unfinished command is to be refused: see EvictClients
	spared   atomic.Bool                   // CLIENT NO-EVICT ON
	queued   atomic.Int32                  // one more than the commands that wait for EXEC, 0 outside of MULTI
	kept     atomic.Int64                  // bytes that these and the watched keys take
	subs     atomic.Pointer[subscriptions] // set by the feeding goroutine only
	tracks   atomic.Pointer[tracking]      // nil without CLIENT TRACKING; set by the feeding goroutine only

	// told says that the client is told of changes that it or another one tracks. Once it
	// is set it stays.
	told         atomic.Bool
	newsUpTo     uint64      // up to where it has to be told before it goes on, 0 if it has not
	lostRedirect atomic.Bool // the client that this one redirects to was found to be gone

	self atomic.Pointer[identity] // nil: none was given; set by the feeding goroutine only

	mu     sync.Mutex
	outbox *outbox // guarded by mu: what others have to say to the client, between replies; nil until they have
	mail   atomic.Bool
	gone   bool // guarded by mu: nothing is left for the client any more
}

// identity is what a client calls itself. It is replaced, never changed.
type identity struct{ name, libName, libVer string }

// replyMode is the state of CLIENT REPLY.
type replyMode uint8

const (
	replyOn replyMode = iota
	replyOff
	replySkipNext // CLIENT REPLY SKIP itself is being answered with silence
	replySkip     // the command after it is
)

// ID is the number that CLIENT ID answers; it is never used twice.
func (s *Session) ID() int64 { return s.id }

// Kill ends the session: at its next Feed if it can be fed, at once if its peer
// does not read what it was sent. Any goroutine may call it.
func (s *Session) Kill() {
	s.killed.Store(true)
	s.peer.Abort()
}

// Name returns the name that CLIENT SETNAME gave. Any goroutine may call it.
func (s *Session) Name() string { return s.identity().name }

// identity returns what the client calls itself. Any goroutine may call it.
func (s *Session) identity() identity {
	if n := s.self.Load(); n != nil {
		return *n
	}
	return identity{}
}

// setName is CLIENT SETNAME.
func (s *Session) setName(name []byte) {
	n := s.identity()
	n.name = string(name)
	s.identify(n)
}

// identify sets what the client calls itself. Most say nothing, and cost nothing.
func (s *Session) identify(n identity) {
	if n == (identity{}) {
		s.self.Store(nil)
		return
	}
	s.self.Store(&n)
}

// selected is the database of the session.
func (s *Session) selected() int { return int(s.db.Load()) }

// reset returns the session to the state of a new connection (RESET), but for its
// subscriptions.
func (s *Session) reset(now limit.Instant) {
	s.setProtocol(2)
	s.reply = replyOn
	s.endTracking()
	s.db.Store(0)
	s.setName(nil)
	switch {
	case !s.engine.passwordSet():
		s.unlock()
	case s.authed:
		s.lock(now)
	}
}

// lock makes the session authenticate again before it may go on.
func (s *Session) lock(now limit.Instant) {
	s.authed, s.spent = false, 0
	s.locked.Store(int64(now))
}

// unlock admits the session, whatever becomes of the password.
func (s *Session) unlock() {
	s.authed = true
	s.locked.Store(0)
}

// admitted reports whether the session may run commands.
func (s *Session) admitted() bool { return s.authed || !s.engine.passwordSet() }

// setProtocol switches between RESP2 and RESP3.
func (s *Session) setProtocol(proto int) {
	s.proto = proto
	s.protocol.Store(int32(proto))
}

// lastActive is the instant of the last Feed that got bytes.
func (s *Session) lastActive() limit.Instant { return limit.Instant(s.active.Load()) }
