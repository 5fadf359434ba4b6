package commands

import (
	"sync"
	"sync/atomic"
)

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
