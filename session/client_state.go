package session

import (
	"sync"
	"sync/atomic"
)

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
