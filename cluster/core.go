package cluster

import (
	"errors"
	"sync/atomic"
	"time"

	store "github.com/cellserver/cellserver/cluster/engine"
)

// core is what all parts of a store share.
type core struct {
	engine engine
	timing timing
	policy policy
	count  counters
	limits limits
	// writer is the number of this process in tags, and sequence that of its latest write.
	writer   uint32
	sequence atomic.Uint32
}

// limits are what an operator sets.
type limits struct {
	prefix string // of all keys in the engine
	// timeout is how long after it was submitted an ask is answered, whatever happens.
	timeout time.Duration
	// denials is how long a refusal may be repeated from memory; 0 never.
	denials time.Duration
	// maxValue is the most bytes of a value: what would make a larger one is refused.
	maxValue int
	// refuseAcross refuses an RL.MULTI whose keys are in several slots.
	refuseAcross bool
	// lease is how long a lease lasts at most, and leased reports whether a key is to have
	// one once it is hot; nil for none.
	lease  time.Duration
	leased func(key []byte) bool
}

// newTag names the next write.
func (c *core) newTag() tag { return newTag(c.writer, c.sequence.Add(1)) }

// notDone reports whether err says that nothing was written, nor will be.
func notDone(err error) bool {
	var e *store.Error
	return errors.As(err, &e) && e.NotDone
}

// reasonOf is the reason that the engine gives.
func reasonOf(err error) reason {
	var e *store.Error
	if errors.As(err, &e) {
		return reason(e.Reason)
	}
	return "error"
}
