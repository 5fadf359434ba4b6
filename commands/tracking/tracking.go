package tracking

import "github.com/cellserver/cellserver/commands/command"

// tracking has the options of CLIENT TRACKING ON. It is immutable: a change replaces it.
type tracking struct {
	optIn, optOut, noLoop bool
	// broadcast is BCAST: the client is notified of all keys with one of its prefixes, whether it
	// has read them or not.
	broadcast bool
	prefixes  []string // sorted
	redirect  int64    // the client that gets the messages in place of this one, or 0
}

// cost returns the memory that the prefixes take, in bytes.
func (t *tracking) cost() (n int) {
	if t != nil {
		for _, p := range t.prefixes {
			n += command.SubscriptionCost([]byte(p))
		}
	}
	return n
}

// reading describes the read of a tracking client that a worker runs.
type reading struct {
	number uint64 // 0 if no read runs
	fresh  int    // the number of keys for which the client was not registered before
}

// justRead reports whether this read made the latest registration in who. It is false when no
// read runs.
func (r *reading) justRead(who *readers) bool { return r.number != 0 && who.read == r.number }
