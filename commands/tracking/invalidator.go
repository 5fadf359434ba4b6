package tracking

import (
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/command"
)

// invalidator sends invalidation messages to the clients that track keys. There is one for each
// server.
type invalidator struct {
	server *command.Server
	slot   command.Slot

	clients  atomic.Int64 // the number of tracking clients
	reads    readTable
	prefixes prefixTree
	memory   atomic.Int64 // bytes that the prefixes and their pending keys take

	marks atomic.Uint64 // the latest mark that an observer has taken: see prefixGroup.mark

	mu      sync.Mutex
	running bool           // whether a goroutine runs serve; guarded by mu
	long    []change       // changes of keys with many readers, which serve has to send; guarded by mu
	groups  []*prefixGroup // prefixes with pending keys; guarded by mu
	flushed bool           // whether a flush is pending; guarded by mu
	shrinks bool           // whether serve has to evict entries until the table is within its maximum; guarded by mu

	// issued counts the requests to serve. told is the number of requests that serve has completed.
	// Both are written only with mu held.
	issued, told atomic.Uint64
	waiting      map[*command.Client]struct{} // the clients to wake when told changes; guarded by mu
}

func newInvalidator(s *command.Server, slot command.Slot) *invalidator {
	v := &invalidator{server: s, slot: slot}
	v.reads.init(func(id int64) bool { return s.Host.Registry.Client(id) != nil })
	if f := s.Options.ObserveExpiry; f != nil {
		f(&observer{invalidator: v})
	}
	return v
}

// size returns the memory, in bytes, that the invalidation table and the prefixes take.
func (v *invalidator) size() int64 { return v.reads.memory.Load() + v.memory.Load() }

// change is a change of one key. readers has the key and the clients that had read the key before.
// writer is the ID of the client that changed the key; 0 if no client or more than one client
// changed it.
type change struct {
	readers *readers
	writer  int64
}

// observer gathers the changes of one store while shards of the store are locked, and sends the
// invalidations when they are unlocked. The order of steps prevents stale values in the caches of
// clients. A read registers the client before it looks at the key. A write removes the
// registrations while the key is locked. A message that is posted to a client while the client runs
// a command is sent after the reply to that command.
type observer struct {
	invalidator *invalidator
	worker      *command.Worker // the worker whose changes are observed; nil for keys that expire without a command
	reading     *reading        // the read that the worker runs; nil if worker is nil
	found       []change
	at          map[string]int // the index in found of each key; nil while found is short
	groups      []*prefixGroup
	mark        uint64 // the mark for prefix groups that get keys before the next unlock; 0 if none is taken yet
	flushed     bool
}
