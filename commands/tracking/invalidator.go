package tracking

import (
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/commands/command"
)

// invalidator tells clients what they have to forget.
type invalidator struct {
	server *command.Server
	slot   command.Slot

	clients  atomic.Int64 // that track
	reads    readTable
	prefixes prefixTree
	memory   atomic.Int64 // of prefixes and of what is pending for them

	marks atomic.Uint64 // the latest mark of an observer

	mu      sync.Mutex
	running bool           // guarded by mu: a goroutine serves what follows
	long    []change       // guarded by mu: changes with many readers
	groups  []*prefixGroup // guarded by mu: those with something pending
	flushed bool           // guarded by mu
	shrinks bool           // guarded by mu: the table is to be brought within its bound

	// issued counts what has been left to be told, and told is as much of it as has been.
	// Both change with mu held.
	issued, told atomic.Uint64
	waiting      map[*command.Client]struct{} // guarded by mu: woken when told changes
}

func newInvalidator(s *command.Server, slot command.Slot) *invalidator {
	v := &invalidator{server: s, slot: slot}
	v.reads.init(func(id int64) bool { return s.Host.Client(id) != nil })
	if f := s.Options.ObserveExpiry; f != nil {
		f(&observer{invalidator: v})
	}
	return v
}

// size is how many bytes the invalidation table and the prefixes take.
func (v *invalidator) size() int64 { return v.reads.memory.Load() + v.memory.Load() }

// change is a key that has changed, those who had read it, and who changed it, 0 if
// that was nobody.
type change struct {
	who    *readers
	writer int64
}

// observer gathers what one store changes until it holds no lock. The order is what
// makes a stale value impossible: a read is registered before it looks, a write takes
// the registrations while the key is locked, and a message that is left with a client
// while it runs a command leaves behind the reply.
type observer struct {
	invalidator *invalidator
	worker      *command.Worker // nil for the sweep
	reading     *reading        // of the worker
	found       []change
	at          map[string]int // where in found a key is, once there are more than few
	groups      []*prefixGroup
	mark        uint64 // given to groups until the next release, 0 if to none
	flushed     bool
}
