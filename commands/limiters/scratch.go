package limiters

import (
	"sync"

	"github.com/cellserver/cellserver/stats"
)

// scratch has the reusable memory of a worker for the limiters, and its tables for RL.TOP.
type scratch struct {
	multi  multiArgs
	use    useScratch
	counts *stats.GroupLane
	mixed  *mixed // the one of the server
	// The keys of this batch that were noted for RL.TOP: those of refusals and those of calls.
	noted, called []notedKey
	details       []detail // details of noted calls
	denials       stats.Sampler
	calledOnce    bool // at least one call has been noted
	// The number of calls before the next one that is noted, and before the next one whose
	// details are noted.
	untilCall, untilDetail int

	mu            sync.Mutex
	denied, calls topTable   // guarded by mu: the tables of RL.TOP
	groups        seenGroups // guarded by mu
}
