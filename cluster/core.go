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
	// writer identifies this process in tags, and sequence is the number of its latest write.
	writer   uint32
	sequence atomic.Uint32
}

// limits are the settings of an operator.
type limits struct {
	prefix string // of all keys in the engine
	// timeout is the time after its submission within which an ask is answered in any case.
	timeout time.Duration
	// denials is how long a refusal may be repeated from memory; 0 means never.
	denials time.Duration
	// maxValue is the maximum number of bytes of a value. A change that would exceed it is refused.
	maxValue int
	// refuseAcross refuses an RL.MULTI whose keys are in several slots.
	refuseAcross bool
	// lease is the longest duration of a lease. leased reports whether a key gets a lease once it
	// is hot; nil means that no key does.
	lease  time.Duration
	leased func(key []byte) bool
}

// newTag returns the tag of the next write.
func (c *core) newTag() tag { return newTag(c.writer, c.sequence.Add(1)) }

// notDone reports whether err says that nothing was or will be written.
func notDone(err error) bool {
	var e *store.Error
	return errors.As(err, &e) && e.NotDone
}

// reasonOf returns the reason that the engine's error gives.
func reasonOf(err error) reason {
	var e *store.Error
	if errors.As(err, &e) {
		return reason(e.Reason)
	}
	return "error"
}
