package decide

import (
	"errors"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/counter"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// errNotOne is the error of an ask that is not about one entry.
var errNotOne = errors.New("decide: the ask is not about one entry")

// Action is what a plan does to its key. The numbers are those of the families.
type Action uint8

// The actions.
const (
	// Keep changes nothing: neither value nor expiry.
	Keep Action = iota
	// Store makes Kind, Expiry and what Apply returns what the key holds.
	Store
	// Remove makes the key go away.
	Remove
)

// Plan is what was decided about one entry and is to be done to its key. It is scratch of
// one goroutine, for one ask after another: [Plan.One] fills it. The zero value is ready.
//
// Nothing has happened yet. Who has the entry may still drop the plan, or decide again on
// another entry: a decision depends on nothing but the entry, the instant and the ask.
type Plan struct {
	Action Action
	// Kind and Expiry belong to the entry that Store stores. Expiry is the instant from
	// which on the key is as if it did not exist, or [entry.NoExpiry].
	Kind   entry.Kind
	Expiry limit.Instant
	// Frees says that those who wait for room under the key should look again.
	Frees bool
	// Foreign says that the key had the usage of another limit: see [Ask.Foreign].
	Foreign bool

	by     Family        // whose plan it is
	tat    limit.Instant // of a cell that is stored
	window slidingwindow.Plan
	bucket tokenbucket.Plan
	lease  concurrency.Plan
	count  counter.Plan
}

// Apply returns the bytes to store where Action is Store. value is what was decided on, nil
// without an entry. Apply either changes value in place and returns it, or leaves it alone
// and writes to the capacity of dst, or to new memory where that is too small. Whoever may
// not change the value, since others read it or since the plan may be dropped, passes a
// copy. dst must not overlap value.
//
// A plan of a lease refers to the member that its ask names, until [Plan.Forget].
func (p *Plan) Apply(value, dst []byte) []byte {
	switch p.by {
	case Window:
		return p.window.Apply(value, dst)
	case Bucket:
		return p.bucket.Apply(value, dst)
	case Lease:
		return p.lease.Apply(value, dst)
	case Counter:
		return p.count.Append(dst[:0])
	}
	if p.Kind == entry.Cell {
		return entry.AppendCell(dst[:0], p.tat, p.Expiry)
	}
	return value // only the expiry changes
}

// Cell returns the entry that Store stores where Kind is that of a cell; dst is as for Apply.
func (p *Plan) Cell(dst []byte) entry.Entry {
	return entry.Entry{Kind: entry.Cell, Expiry: p.Expiry, Value: entry.AppendCell(dst, p.tat, p.Expiry)}
}

// AppendDelta appends to dst what Apply is about to change in a large value, for a record
// that is smaller than the value. ok is false where the whole value is to be recorded.
func (p *Plan) AppendDelta(dst, value []byte) (delta []byte, ok bool) {
	switch p.by {
	case Window:
		return p.window.AppendDelta(dst, value)
	case Lease:
		return p.lease.AppendDelta(dst, value)
	}
	return dst, false
}

// Forget drops what the plan refers to of its ask.
func (p *Plan) Forget() { p.lease.Member = nil }

// end says what becomes of an entry e of a family other than cells. frees says that a
// stored entry leaves more room than there was. That may be so as well if it is of another
// kind, or ends earlier than e would have.
func (p *Plan) end(e *entry.Entry, action Action, k entry.Kind, expiry limit.Instant, frees bool) {
	if p.Action = action; action != Store {
		p.Frees = action == Remove
		return
	}
	p.Kind, p.Expiry = k, min(expiry, entry.NoExpiry-1)
	p.Frees = frees || k != e.Kind || p.Expiry < e.Expiry
}

// endCell says what becomes of an entry that is to be a cell with the TAT next. Nobody
// waits for room in a cell.
func (p *Plan) endCell(e *entry.Entry, now, next limit.Instant) {
	switch {
	case next > now:
		p.Action, p.Kind, p.Frees = Store, entry.Cell, false
		p.Expiry, p.tat = min(next, entry.NoExpiry-1), next
	case e.Kind != entry.None:
		p.Action, p.Frees = Remove, true
	}
}
