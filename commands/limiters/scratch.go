package limiters

import (
	"sync"

	"github.com/cellserver/cellserver/stats"
)

// scratch has a worker's reusable memory for the limiters, and its tables for RL.TOP.
type scratch struct {
	multi  multiArgs
	use    useScratch
	counts *stats.GroupLane
	mixed  *mixed // shared by all workers of the server
	// noted has the keys of refusals, and called those of calls, that this batch has sampled for
	// RL.TOP.
	noted, called []notedKey
	details       []detail // the details of sampled calls, referred to by index
	denials       stats.Sampler
	calledOnce    bool // the worker has sampled at least one call
	// untilCall is the number of calls to skip before the next one is sampled. untilDetail is the
	// number of sampled calls until the next one whose details are kept.
	untilCall, untilDetail int

	mu            sync.Mutex
	denied, calls topTable   // guarded by mu: the tables of RL.TOP
	groups        seenGroups // guarded by mu: what was recorded about groups of keys
}
