package ratelimit

import (
	"sync"

	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
)

// Clauses is the reusable memory for the clauses of one [decide.Several]: the clauses, the decisions
// on them, and the limits to which the clauses refer. All three have the same length. The zero value
// is ready for use.
type Clauses struct {
	Clauses []decide.Clause
	Details []limit.Decision
	Rooms   []clause.Room
}

// keptClauses is the number of clauses up to which memory stays with its owner after a batch.
const keptClauses = 64

// wide is a pool of memory for calls with more than keptClauses clauses. It refers to no arguments of
// calls.
var wide sync.Pool // of *Clauses

// Grow sets the lengths to n. The elements may have values of an earlier call.
func (m *Clauses) Grow(n int) {
	if n > cap(m.Clauses) {
		*m = newClauses(n)
	}
	m.Clauses, m.Details, m.Rooms = m.Clauses[:n], m.Details[:n], m.Rooms[:n]
}

// newClauses returns memory for at least n clauses. For more than keptClauses it takes memory of the
// pool if that is large enough.
func newClauses(n int) Clauses {
	if n > keptClauses {
		if m, _ := wide.Get().(*Clauses); m != nil && cap(m.Clauses) >= n {
			return *m
		}
	}
	return Clauses{make([]decide.Clause, n), make([]limit.Decision, n), make([]clause.Room, n)}
}

// Trim returns memory for more than keptClauses clauses to a pool. It is called at the end of a batch,
// when no ask refers to the memory any more.
func (m *Clauses) Trim() {
	if cap(m.Clauses) <= keptClauses {
		return
	}
	clear(m.Clauses[:cap(m.Clauses)]) // the clauses refer to the arguments of the call
	for i := range m.Rooms[:cap(m.Rooms)] {
		m.Rooms[i].Lease.Member = nil
	}
	pooled := *m
	wide.Put(&pooled)
	*m = Clauses{}
}

// keys is the buffer for the keys of states that the asks of a batch refer to. The first lasting
// bytes are in use until the batch ends. The bytes after them belong to one volatile call, such as a
// call of a script, and the next call overwrites them.
type keys struct {
	buf     []byte
	lasting int
}

// maxKeys is the maximum size, in bytes, of the buffer that is kept after a batch. A batch that needs
// more gets another buffer; the first one lives as long as an ask refers to it.
const maxKeys = 64 << 10

// begin prepares the buffer for a call.
func (k *keys) begin(volatile bool) {
	switch {
	case len(k.buf) > maxKeys: // a transaction may have thousands of calls
		k.buf, k.lasting = nil, 0
	case volatile: // a script may make any number of calls, and the statistics copy its keys
		k.buf = k.buf[:k.lasting]
	}
}

// add returns the key of the state of clause i, counted from 0, of the policy of l or of its
// candidate. The key is valid until the batch ends or, for a volatile call, until the next call.
func (k *keys) add(l *Lookup, i int, candidate bool) []byte {
	if i == 0 && !candidate && l.StateKey != nil {
		return l.StateKey
	}
	from := len(k.buf)
	if k.buf = policy.AppendStateKey(k.buf, l.Policy, l.Key, i+1, candidate); !l.From.Volatile() {
		k.lasting = len(k.buf)
	}
	return k.buf[from:len(k.buf):len(k.buf)]
}

// endBatch ends the use of all keys. It reports whether it has dropped the buffer because it was too
// large.
func (k *keys) endBatch() (dropped bool) {
	k.lasting = 0
	if k.buf = k.buf[:0]; cap(k.buf) > maxKeys {
		k.buf = nil
		return true
	}
	return false
}
