package server

import (
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/transport"
)

// longInput is the state of the janitor for long commands.
type longInput struct {
	held int          // number of consecutive checks that have held long input; used only by the janitor
	most atomic.Int64 // maximum size in bytes of the input outside of Go's heap in this second
}

// Clients may send hundreds of megabytes a second. The bytes that a transport reads are outside of
// Go's heap, but long commands produce as much garbage in the heap, and the collector may be
// slower. So while parts of long commands arrive, the janitor checks the memory of clients and the
// heap every longInputPause. It refuses commands if clients take too much memory. While Go's heap
// exceeds its bound, the janitor holds long input: sessions do not read it until the collector has
// caught up. Then TCP flow control stops the clients.
const (
	// longInputPause is the time between two checks of a server without connections. longInputShare
	// is added to it for each connection, so that checks of thousands of connections take only a
	// small part of a processor. Clients send a few megabytes between two checks.
	longInputPause = 5 * time.Millisecond
	longInputShare = 2 * time.Microsecond
	// heapTolerance is the number of bytes by which Go's heap may exceed its bound before long
	// input is held, since collections begin a little late.
	heapTolerance = 4 << 20
	// maxHolds is the maximum number of consecutive checks after which long input is held. After
	// that every session processes some input even if the heap still exceeds its bound, since
	// scripts or replies may keep it so for long.
	maxHolds = 20
)

// untilNextLook returns the time from now to the janitor's next check of long input.
func (s *Server) untilNextLook() time.Duration {
	return longInputPause + time.Duration(s.transport.Stats().Connections)*longInputShare
}

// boundLongInput is one check of long input. While clients take more than maxmemory-clients, it
// refuses the long commands of those that take the most. It holds long input while Go's heap
// exceeds its bound, for maxHolds checks at most. It returns true if the heap exceeds its bound, so
// that the janitor has to check again. It also updates the memory that counts against maxmemory in
// addition to the keys.
func (s *Server) boundLongInput() (again bool) {
	s.longInput.most.Store(max(s.longInput.most.Load(), transport.MappedInput()))
	s.engine.RefuseCommands(s.clientMemory())
	s.keyspace.SetBeside(s.besideKeys())
	again = s.heap.Exceeds(heapTolerance)
	hold := again && s.longInput.held < maxHolds
	if hold {
		s.longInput.held++
	} else {
		s.longInput.held = 0
	}
	s.engine.HoldLongInput(hold)
	return again
}
