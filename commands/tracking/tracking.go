package tracking

import "github.com/cellserver/cellserver/command"

// tracking has the options of CLIENT TRACKING ON for one client. It does not change once other
// goroutines may read it: the client gets a new tracking for new options.
type tracking struct {
	optIn, optOut, noLoop bool
	// broadcast is the option BCAST: the client is notified of changes of all keys with one of its
	// prefixes, even of keys that it has not read.
	broadcast bool
	prefixes  []string // the prefixes of BCAST in ascending order
	redirect  int64    // the ID of the client that gets the messages instead; 0 if this client gets them
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
	number uint64 // number of the running read; 0 if no read runs
	fresh  int    // number of keys that the read has registered and that were not registered for the client before
}

// justRead reports whether the running read has added the latest client to of, the readers of a
// key. It is false if no read runs.
func (r *reading) justRead(of *readers) bool { return r.number != 0 && of.read == r.number }
