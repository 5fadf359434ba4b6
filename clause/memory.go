package clause

import (
	"sync"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
)

// Memory is the reusable memory for the clauses of one [decide.Several]: the clauses, the decisions on
// them, and the rooms to which the clauses refer. All three have the same length. The zero value is
// ready for use.
type Memory struct {
	Clauses []decide.Clause
	Details []limit.Decision
	Rooms   []Room
}

// keptClauses is the number of clauses up to which memory stays with its owner after a batch.
const keptClauses = 64

// wide is a pool of memory for calls with more than keptClauses clauses. It refers to no arguments of
// calls.
var wide sync.Pool // values of type *Memory

// Grow sets the lengths of the three slices to n. The elements may have values of an earlier call.
func (m *Memory) Grow(n int) {
	if n > cap(m.Clauses) {
		*m = newMemory(n)
	}
	m.Clauses, m.Details, m.Rooms = m.Clauses[:n], m.Details[:n], m.Rooms[:n]
}

// newMemory returns memory for at least n clauses. For more than keptClauses it takes memory of the
// pool if that is large enough.
func newMemory(n int) Memory {
	if n > keptClauses {
		if m, _ := wide.Get().(*Memory); m != nil && cap(m.Clauses) >= n {
			return *m
		}
	}
	return Memory{make([]decide.Clause, n), make([]limit.Decision, n), make([]Room, n)}
}

// Trim returns memory for more than keptClauses clauses to a pool. It is called at the end of a batch,
// when no ask refers to the memory any more.
func (m *Memory) Trim() {
	if cap(m.Clauses) <= keptClauses {
		return
	}
	m.Forget()
	for i := range m.Rooms[:cap(m.Rooms)] {
		m.Rooms[i].Lease.Member = nil
	}
	pooled := *m
	wide.Put(&pooled)
	*m = Memory{}
}

// Forget clears the clauses, so that they refer to no keys.
func (m *Memory) Forget() { clear(m.Clauses[:cap(m.Clauses)]) }
