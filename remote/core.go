package remote

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/limit"
	store "github.com/cellserver/cellserver/remote/engine"
)

// core has the fields that all parts of a store share.
type core struct {
	engine engine
	timing timing
	policy policy
	count  counters
	limits limits
	// writer identifies this process in tags. sequence is the number of its latest write.
	writer   uint32
	sequence atomic.Uint32
}

// limits has the settings of the operator.
type limits struct {
	prefix string // the prefix of all keys in the engine, "" for none
	hidden string // beginning of the keys that belong to the servers: see Options.Hidden
	// timeout is the time after which the policy answers an ask, measured from its submission. Asks
	// about all keys have no such limit.
	timeout time.Duration
	// denials is the time for which a refusal may be repeated from memory, without the engine; 0
	// means never.
	denials time.Duration
	// maxValue is the maximum number of bytes of a value in the engine. A change that makes a value
	// grow beyond it is refused.
	maxValue int
	// refuseAcross says that an RL.MULTI with keys in several slots is refused, and so is a joint ask with states in
	// several slots.
	refuseAcross bool
	// lease is the maximum duration of a lease. leased reports whether a key gets a lease while
	// it is hot; nil means that no key does.
	lease  time.Duration
	leased func(key []byte) bool
}

// newTag returns the tag of the next write of this process. Any goroutine may call it.
func (c *core) newTag() tag { return newTag(c.writer, c.sequence.Add(1)) }

// notDone reports whether err says that the request has changed nothing in the engine and never
// will.
func notDone(err error) bool {
	var e *store.Error
	return errors.As(err, &e) && e.NotDone
}

// reasonOf returns the reason in err if err is a [store.Error]. For any other error it returns
// "error".
func reasonOf(err error) reason {
	var e *store.Error
	if errors.As(err, &e) {
		return reason(e.Reason)
	}
	return "error"
}

// isForeign reports whether err says that the value of the key is not a string, or was not written
// by this package.
func isForeign(err error) bool {
	return errors.Is(err, limit.ErrWrongType) || reasonOf(err) == "WRONGTYPE"
}
