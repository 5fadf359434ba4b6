package commands

import (
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/transport"
)

// Client is what commands and other sessions may know of a connection. Fields without a
// note belong to the goroutine that feeds it.
type Client struct {
	Owner     any // whose face this is
	server    *Server
	peer      transport.Peer
	id        int64
	created   limit.Instant
	proto     int  // 2 or 3
	authed    bool // has authenticated, or came when that was not needed
	reply     replyMode
	spent     int // bytes in and out before authentication
	closing   bool
	exclusive bool // a transaction or script is running: nothing may park
	isStandIn bool // acts for a session whose command runs elsewhere
	beside    bool // as isStandIn, but not alone: nothing may park, and nothing is locked
	// Read by other goroutines: CLIENT LIST, the janitor.
	db       atomic.Int32
	protocol atomic.Int32 // proto, for the others
	locked   atomic.Int64 // instant since which authentication is due, 0 if it is not
	killed   atomic.Bool
	spared   atomic.Bool              // CLIENT NO-EVICT ON
	self     atomic.Pointer[identity] // nil: none was given; set by the feeding goroutine only
}

// transactionState is what MULTI and WATCH keep of a connection.
type transactionState struct {
	tx       *transaction
	watched  any // the store's token for the keys of WATCH, nil if there are none
	watching int // bytes that these take
}

// trackingState is what CLIENT TRACKING keeps of a connection.
type trackingState struct {
	caching bool                     // what CLIENT CACHING said is in force
	tracks  atomic.Pointer[tracking] // nil without CLIENT TRACKING; set by the feeding goroutine only
	// told says that the client is told of changes that it or another one tracks. Once it
	// is set it stays.
	told         atomic.Bool
	newsUpTo     uint64      // up to where it has to be told before it goes on, 0 if it has not
	lostRedirect atomic.Bool // the client that this one redirects to was found to be gone
}

// mailbox is what others have to say to a client.
type mailbox struct {
	midMail bool // a message has been sent in part
	mu      sync.Mutex
	outbox  *outbox // guarded by mu: what others have to say to the client, between replies; nil until they have
	mail    atomic.Bool
	gone    bool // guarded by mu: nothing is left for the client any more
}

// activity is what CLIENT LIST and the janitor look at.
type activity struct {
	active   atomic.Int64 // instant of the last Feed that got bytes
	partial  atomic.Int64 // instant the unfinished command began, 0 if none
	lastCmd  atomic.Int32 // id of the last command, -1 before the first
	overfull atomic.Bool  // its unfinished command is to be refused: see EvictClients
	queued   atomic.Int32 // one more than the commands that wait for EXEC, 0 outside of MULTI
	kept     atomic.Int64 // bytes that these and the watched keys take
}
