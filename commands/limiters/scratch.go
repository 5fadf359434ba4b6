package limiters

import (
	"sync"

	"github.com/cellserver/cellserver/stats"
)

// scratch is the scratch of the limiters, and what RL.TOP shows.
type scratch struct {
	multi  multiArgs
	use    useScratch
	counts *stats.GroupLane
	mixed  *mixed // that of the server
	// What RL.TOP shows of this batch.
	noted, called []notedKey
	details       []detail // what calls that are noted were like
	denials       stats.Sampler
	calledOnce    bool // a call has been noted
	// How many calls are left before the next that is noted, and the next whose details are.
	untilCall, untilDetail int

	mu            sync.Mutex
	denied, calls topTable   // guarded by mu: RL.TOP
	groups        seenGroups // guarded by mu
}
