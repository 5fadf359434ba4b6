package server

import (
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/transport"
)

// longInput is the state of the janitor for long commands.
type longInput struct {
	held int          // the number of consecutive looks that have held long input; used only by the janitor
	most atomic.Int64 // the maximum number of bytes of input outside of Go's heap in this second
}

// Clients may send hundreds of megabytes a second. The bytes that a transport reads are outside of
// Go's heap, but long commands produce as much garbage in it, and the collector may be slower. So
// while parts of long commands arrive, the janitor looks at the memory of clients and at the heap
// every longInputPause. It refuses commands if clients take too much memory. While Go's heap
// exceeds its bound, it holds long input until the collector has caught up. TCP flow control stops
// the clients then.
const (
	// longInputPause is the time between two looks, without longInputShare for each connection, so
	// that looks at thousands of connections take only a small part of a processor. Clients send a
	// few megabytes between two looks.
	longInputPause = 5 * time.Millisecond
	longInputShare = 2 * time.Microsecond
	// heapTolerance is the number of bytes by which Go's heap may exceed its bound before long
	// input is held, since collections begin a little late.
	heapTolerance = 4 << 20
	// maxHolds is the maximum number of consecutive looks for which long input is held. After that
	// every session processes some input even if the heap still exceeds its bound, since scripts or
	// replies may keep it so for long.
	maxHolds = 20
)

// untilNextLook returns the time from now to the janitor's next look at long input.
func (s *Server) untilNextLook() time.Duration {
	return longInputPause + time.Duration(s.transport.Stats().Connections)*longInputShare
}

// boundLongInput refuses commands that exceed maxmemory-clients, and holds long input while Go's
// heap exceeds its bound. It returns true if the heap does, so that the janitor has to look again.
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
