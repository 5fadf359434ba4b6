package session

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/commands/stats"
	"github.com/cellserver/cellserver/limit"
)

// totals counts clients and what became of them since the start.
type totals struct {
	rate        stats.Rate
	outbound    atomic.Int64  // bytes that wait in outboxes
	slowReaders atomic.Int64  // clients that were cut off for what they left unread
	kept        atomic.Int64  // bytes of transactions and watched keys
	evicted     atomic.Int64  // clients that were closed by maxmemory-clients
	sinceDecay  time.Duration // touched by Tick only
	received    atomic.Int64  // connections since the start
	refused     atomic.Int64
	errors      stats.Errors
	panics      atomic.Int64
}

// workers are all lanes, and those that are free.
type workers struct {
	lanesMu                    sync.Mutex
	countedSince               limit.Instant // guarded by lanesMu: when counting began
	lanes                      []*Lane       // guarded by lanesMu; never shrinks
	idle                       []*Lane       // guarded by lanesMu: lanes of Offload that are free
	coroutines, everyCoroutine []*coroutine  // guarded by lanesMu: those that are free, and all
}

// background is the goroutines beside the loops.
type background struct {
	slowMu      sync.Mutex
	slow        sync.WaitGroup // goroutines of spawn
	closed      bool           // guarded by slowMu
	slowSlots   chan struct{}
	besideSlots chan struct{} // of moveBeside
}
