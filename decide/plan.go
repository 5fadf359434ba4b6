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

// Action is the change that a plan makes to a key. The families use the same numbers.
type Action uint8

// The actions.
const (
	// Keep changes nothing: neither value nor expiry.
	Keep Action = iota
	// Store sets the key to Kind, Expiry and the bytes that Apply returns.
	Store
	// Remove deletes the key.
	Remove
)

// Plan is the change of one key that a decision calls for. One goroutine reuses it for one ask after
// another: [Plan.One] fills it. The zero value is ready.
//
// The caller makes the change. It may also drop the plan, or decide again on another entry: a decision
// depends on the entry, the instant and the ask alone.
type Plan struct {
	Action Action
	// Kind and Expiry are those of the entry to store. From the instant Expiry on the key does not
	// exist; [entry.NoExpiry] is never.
	Kind   entry.Kind
	Expiry limit.Instant
	// Frees reports whether callers that wait for room under the key should try again.
	Frees bool
	// Foreign says that the key had the usage of another limit: see [Ask.Foreign].
	Foreign bool

	by     Family        // the family whose plan it is
	tat    limit.Instant // of a cell that is stored
	window slidingwindow.Plan
	bucket tokenbucket.Plan
	lease  concurrency.Plan
	count  counter.Plan
}

// Apply returns the bytes to store if Action is Store. value is the value that the decision was made on,
// nil without an entry. Apply either changes value in place and returns it, or leaves it alone and writes
// to the capacity of dst, or to new memory if that is too small. A caller that must not change the value,
// because others read it or because it may drop the plan, passes a copy. dst must not overlap value.
//
// The plan of a lease refers to the member that its ask names, until [Plan.Forget].
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

// Cell returns the entry to store if Kind is that of a cell. dst is as for Apply.
func (p *Plan) Cell(dst []byte) entry.Entry {
	return entry.Entry{Kind: entry.Cell, Expiry: p.Expiry, Value: entry.AppendCell(dst, p.tat, p.Expiry)}
}

// AppendDelta appends to dst a record of the change that Apply is about to make to a large value. ok is
// false if the log needs the whole value.
func (p *Plan) AppendDelta(dst, value []byte) (delta []byte, ok bool) {
	switch p.by {
	case Window:
		return p.window.AppendDelta(dst, value)
	case Lease:
		return p.lease.AppendDelta(dst, value)
	}
	return dst, false
}

// Forget drops all references to bytes of the ask.
func (p *Plan) Forget() { p.lease.Member = nil }

// end sets Action for an entry e of a family other than cells. frees is whether the new state has more
// room than the old one. An entry of another kind, or one that ends earlier than e, may have more room as
// well.
func (p *Plan) end(e *entry.Entry, action Action, k entry.Kind, expiry limit.Instant, frees bool) {
	if p.Action = action; action != Store {
		p.Frees = action == Remove
		return
	}
	p.Kind, p.Expiry = k, min(expiry, entry.NoExpiry-1)
	p.Frees = frees || k != e.Kind || p.Expiry < e.Expiry
}

// endCell sets Action for an entry that becomes a cell with the TAT next. No caller waits for room in a
// cell.
func (p *Plan) endCell(e *entry.Entry, now, next limit.Instant) {
	switch {
	case next > now:
		p.Action, p.Kind, p.Frees = Store, entry.Cell, false
		p.Expiry, p.tat = min(next, entry.NoExpiry-1), next
	case e.Kind != entry.None:
		p.Action, p.Frees = Remove, true
	}
}
