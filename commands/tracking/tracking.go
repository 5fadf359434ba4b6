package tracking

import "github.com/cellserver/cellserver/commands/command"

// tracking is what a client has asked for with CLIENT TRACKING ON. It is replaced,
// never changed.
type tracking struct {
	optIn, optOut, noLoop bool
	// broadcast is BCAST: the client is told of all keys with one of its prefixes,
	// whatever it has read.
	broadcast bool
	prefixes  []string // sorted
	redirect  int64    // the client that is told in the place of this one, or 0
}

// cost is the memory that the prefixes take.
func (t *tracking) cost() (n int) {
	if t != nil {
		for _, p := range t.prefixes {
			n += command.SubscriptionCost([]byte(p))
		}
	}
	return n
}

// reading is the read of a tracking client that a worker runs.
type reading struct {
	number uint64 // 0 if none runs
	fresh  int    // how many keys it has for which the client was not registered
}

// justRead reports whether an entry is of this read and none before, nor of one since.
func (r *reading) justRead(who *readers) bool { return r.number != 0 && who.read == r.number }
