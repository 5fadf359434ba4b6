package server

import (
	"math"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/transport"
)

// longInput is what is known of clients' long commands.
type longInput struct {
	held int          // looks, one after another, at which it was held; of the janitor
	most atomic.Int64 // bytes of it outside of Go's heap, the most that a look has found in this second
}

// Clients send hundreds of megabytes a second. What that takes is outside of Go's heap (see transport), but
// commands that long make as much garbage, and the collector may be slower. So the janitor looks at both
// every longInputPause while parts of long commands arrive. It refuses commands, and while Go's heap exceeds
// its bound it has long input wait for the collector: TCP then has the clients wait.
const (
	// longInputPause is between two looks, and longInputShare for each connection besides, so that looks at
	// thousands take a small part of a processor. Clients send a few megabytes meanwhile.
	longInputPause = 5 * time.Millisecond
	longInputShare = 2 * time.Microsecond
	// heapTolerance is by how many bytes Go's heap may exceed its bound before long input waits: its
	// collections begin a little late.
	heapTolerance = 4 << 20
	// mostHolds is for how many looks in a row long input waits. Then all get a turn, even if the heap
	// still exceeds its bound: scripts or replies may take it for long.
	mostHolds = 20
)

// untilNextLook is how long the janitor waits between two looks.
func (s *Server) untilNextLook() time.Duration {
	return longInputPause + time.Duration(s.transport.Stats().Connections)*longInputShare
}

// boundLongInput has commands refused that are too much for maxmemory-clients, and long input wait while
// there is too much garbage. It reports whether there is, and another look is due.
func (s *Server) boundLongInput() (again bool) {
	s.longInput.most.Store(max(s.longInput.most.Load(), transport.MappedInput()))
	s.engine.RefuseCommands(s.clientMemory())
	s.keyspace.SetBeside(s.besideKeys())
	again = s.heapExceeds()
	hold := again && s.longInput.held < mostHolds
	if hold {
		s.longInput.held++
	} else {
		s.longInput.held = 0
	}
	s.engine.HoldLongInput(hold)
	return again
}

// heapExceeds reports whether Go's heap is larger than it may be.
func (s *Server) heapExceeds() bool {
	if s.limitHeap == nil {
		return false
	}
	s.heapMu.Lock()
	bound := s.heapBound
	s.heapMu.Unlock()
	return bound < math.MaxInt64-heapTolerance && s.sizeOfHeap() > bound+heapTolerance
}

// sizeOfHeap is what the bound of Go's heap counts: see [debug.SetMemoryLimit].
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
			return 0 // this runtime does not say
		}
	}
	return int64(sizes[ofAll].Value.Uint64() - sizes[ofReleased].Value.Uint64())
}
