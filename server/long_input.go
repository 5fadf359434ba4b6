package server

import (
	"math"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/transport"
)

// longInput is the state of the janitor about long commands.
type longInput struct {
	held int          // consecutive looks at which long input was held; used by the janitor only
	most atomic.Int64 // the most bytes outside of Go's heap that a look has found in this second
}

// Clients send hundreds of megabytes a second. The input is outside of Go's heap (see transport),
// but long commands produce as much garbage, and the collector may be slower. So the janitor checks
// both every longInputPause while parts of long commands arrive. It refuses commands, and while
// Go's heap exceeds its bound it holds long input until the collector has caught up: TCP flow
// control then stops the clients.
const (
	// longInputPause is the time between two looks. longInputShare is added for each connection, so
	// that looks at thousands of connections take a small part of a processor. Clients send a few
	// megabytes meanwhile.
	longInputPause = 5 * time.Millisecond
	longInputShare = 2 * time.Microsecond
	// heapTolerance is by how many bytes Go's heap may exceed its bound before long input is held:
	// collections begin a little late.
	heapTolerance = 4 << 20
	// maxHolds is for how many consecutive looks long input is held. Then every session gets a
	// turn, even if the heap still exceeds its bound: scripts or replies may keep it so for long.
	maxHolds = 20
)

// untilNextLook returns the time until the janitor's next look.
func (s *Server) untilNextLook() time.Duration {
	return longInputPause + time.Duration(s.transport.Stats().Connections)*longInputShare
}

// boundLongInput refuses commands that exceed maxmemory-clients, and holds long input while there
// is too much garbage. It reports whether there is, so that another look is due.
func (s *Server) boundLongInput() (again bool) {
	s.longInput.most.Store(max(s.longInput.most.Load(), transport.MappedInput()))
	s.engine.RefuseCommands(s.clientMemory())
	s.keyspace.SetBeside(s.besideKeys())
	again = s.heapExceeds()
	hold := again && s.longInput.held < maxHolds
	if hold {
		s.longInput.held++
	} else {
		s.longInput.held = 0
	}
	s.engine.HoldLongInput(hold)
	return again
}

// heapExceeds reports whether Go's heap exceeds its bound by more than heapTolerance.
func (s *Server) heapExceeds() bool {
	if s.limitHeap == nil {
		return false
	}
	s.heapMu.Lock()
	bound := s.heapBound
	s.heapMu.Unlock()
	return bound < math.MaxInt64-heapTolerance && s.sizeOfHeap() > bound+heapTolerance
}

// sizeOfHeap returns the memory that the bound of Go's heap counts: see [debug.SetMemoryLimit].
func (s *Server) sizeOfHeap() int64 {
	if s.heapSize != nil {
		return s.heapSize()
	}
	const ofAll, ofReleased = 0, 1
	sizes := []metrics.Sample{
		ofAll:      {Name: "/memory/classes/total:bytes"},
		ofReleased: {Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(sizes)
	for _, m := range sizes {
		if m.Value.Kind() != metrics.KindUint64 {
			return 0 // this runtime lacks the metric
		}
	}
	return int64(sizes[ofAll].Value.Uint64() - sizes[ofReleased].Value.Uint64())
}
