package tracking

import "github.com/cellserver/cellserver/command"

// tracking has the options of CLIENT TRACKING ON for one client. It does not change once other
// goroutines may read it: the client gets a new tracking for new options.
type tracking struct {
	optIn, optOut, noLoop bool
	// broadcast is BCAST: the client is notified of changes of all keys with one of its prefixes,
	// whether it has read them or not.
	broadcast bool
	prefixes  []string // sorted
	redirect  int64    // the ID of the client that gets the messages instead; 0 if there is none
}

// cost returns the memory, in bytes, that the prefixes take; 0 if t is nil.
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
	number uint64 // the number of the read; 0 if none runs
	fresh  int    // the number of keys for which the client was not registered before
}

// justRead reports whether the running read has registered the latest reader in of. It is false if
// no read runs.
func (r *reading) justRead(of *readers) bool { return r.number != 0 && of.read == r.number }
