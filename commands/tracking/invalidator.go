package tracking

import (
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/commands/command"
)

// invalidator sends invalidation messages to tracking clients.
type invalidator struct {
	server *command.Server
	slot   command.Slot

	clients  atomic.Int64 // the number of tracking clients
	reads    readTable
	prefixes prefixTree
	memory   atomic.Int64 // bytes of prefixes and of their pending keys

	marks atomic.Uint64 // the latest mark that an observer took

	mu      sync.Mutex
	running bool           // guarded by mu: a goroutine runs serve
	long    []change       // guarded by mu: changes with many readers, which serve sends
	groups  []*prefixGroup // guarded by mu: prefixes with pending keys
	flushed bool           // guarded by mu: a flush is pending
	shrinks bool           // guarded by mu: serve has to evict entries until the table is within its bound

	// issued counts the requests to serve. told is the number of them that serve has completed.
	// Both change with mu held.
	issued, told atomic.Uint64
	waiting      map[*command.Client]struct{} // guarded by mu: clients to wake when told changes
}

func newInvalidator(s *command.Server, slot command.Slot) *invalidator {
	v := &invalidator{server: s, slot: slot}
	v.reads.init(func(id int64) bool { return s.Host.Client(id) != nil })
	if f := s.Options.ObserveExpiry; f != nil {
		f(&observer{invalidator: v})
	}
	return v
}

// size returns the bytes that the invalidation table and the prefixes take.
func (v *invalidator) size() int64 { return v.reads.memory.Load() + v.memory.Load() }

// change is a key that has changed, with the clients that had read it and the id of the client
// that changed it. The id is 0 if no client, or more than one, changed the key.
type change struct {
	who    *readers
	writer int64
}

// observer gathers the changes of one store until the store holds no lock. The order of steps
// prevents stale values: a read registers the client before it looks at the key, a write takes
// the registrations while the key is locked, and a message that is posted to a client while it
// runs a command leaves after the reply to that command.
type observer struct {
	invalidator *invalidator
	worker      *command.Worker // nil for the observer of the expiry sweep
	reading     *reading        // the read that the worker runs
	found       []change
	at          map[string]int // index in found by key, once found is long
	groups      []*prefixGroup
	mark        uint64 // the mark for prefix groups until the next release of locks; 0 if there is none yet
	flushed     bool
}
