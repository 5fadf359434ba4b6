package decide

import (
	"errors"

	"github.com/cellserver/cellserver/ban"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/counter"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// errNotOne is the error of [Plan.One] for an ask that is not about one entry.
var errNotOne = errors.New("decide: the ask is not about one entry")

// Action is the kind of change that a plan makes to a key. The packages of the families use the
// same numbers.
type Action uint8

// These are the actions.
const (
	// Keep changes neither the value nor the expiry of the key.
	Keep Action = iota
	// Store sets the key to the plan's Kind and Expiry, and to the bytes that [Plan.Apply] returns.
	Store
	// Remove deletes the key.
	Remove
)

// Plan describes the change of one key that follows from a decision. [Plan.One] fills it in. One
// goroutine reuses a plan for one ask after another. The zero value is ready for use.
//
// The caller makes the change. It may also drop the plan, or decide again on another entry: a
// decision depends only on the entry, the instant and the ask.
type Plan struct {
	Action Action
	// Kind and Expiry are the kind and the expiry of the entry to store. The key expires at Expiry;
	// [entry.NoExpiry] means never.
	Kind   entry.Kind
	Expiry limit.Instant
	// Frees is true if there may be more room in the limiter, so that callers that wait for room
	// should try again.
	Frees bool
	// Foreign is true if the key had the usage of another limit: see [Ask.Foreign].
	Foreign bool

	by Family // family of the ask that has filled in the plan
	// counted says that the plan charges a call although the call is denied.
	counted bool
	// remembers says that the entry remembers calls before or after the change. Then memory has the
	// rest of the plan.
	remembers bool
	// holds says that the entry has reservations after the change. Then remembers is true, and holding
	// has the rest of the plan.
	holds bool

	tat    limit.Instant // the TAT to store, if Kind is Cell
	window slidingwindow.Plan
	bucket tokenbucket.Plan
	lease  concurrency.Plan
	count  counter.Plan
	bans   ban.Plan
	memory memory

	holding holding
}

// Apply returns the bytes to store if Action is Store. value is the value on which the decision was
// made, nil if there was no entry. Apply either changes value in place and returns it, or leaves
// value alone and writes to the memory of dst, or to new memory if dst is too small. If value must
// not change, because other goroutines read it or because the plan may be dropped, the caller
// passes a copy. dst must not overlap value.
//
// Until [Plan.Forget], the plan of a lease refers to the bytes of the member in the ask.
func (p *Plan) Apply(value, dst []byte) []byte {
	switch {
	case p.remembers && p.holds:
		return p.applyHolding(value, dst)
	case p.remembers:
		return p.applyRemembering(value, dst)
	}
	return p.apply(value, dst)
}

// apply does what Apply does, for an entry that remembers no calls.
func (p *Plan) apply(value, dst []byte) []byte {
	switch p.by {
	case Window:
		return p.window.Apply(value, dst)
	case Bucket:
		return p.bucket.Apply(value, dst)
	case Lease:
		return p.lease.Apply(value, dst)
	case Counter:
		return p.count.Append(dst[:0])
	case Ban:
		return p.bans.Append(dst[:0])
	}
	if p.Kind == entry.Cell {
		return entry.AppendCell(dst[:0], p.tat, p.Expiry)
	}
	return value // only the expiry changes
}

// Cell returns the entry to store if Kind is [entry.Cell]. Its value has the memory of dst, which must
// be empty.
func (p *Plan) Cell(dst []byte) entry.Entry {
	return entry.Entry{Kind: entry.Cell, Expiry: p.Expiry, Value: entry.AppendCell(dst, p.tat, p.Expiry)}
}

// AppendDelta appends to dst the delta of the change that [Plan.Apply] will make to value, and
// returns the result. It must be called before Apply. ok is false if the change has no delta and
// the log needs the whole value.
func (p *Plan) AppendDelta(dst, value []byte) (delta []byte, ok bool) {
	switch {
	case p.remembers && p.holds:
		return p.appendHoldingDelta(dst)
	case p.remembers:
		return p.appendRememberingDelta(dst, value)
	}
	return p.appendDelta(dst, value)
}

// appendDelta does what AppendDelta does, for an entry that remembers no calls.
func (p *Plan) appendDelta(dst, value []byte) (delta []byte, ok bool) {
	switch p.by {
	case Window:
		return p.window.AppendDelta(dst, value)
	case Lease:
		return p.lease.AppendDelta(dst, value)
	}
	return dst, false
}

// Forget drops the plan's references to bytes of the ask and of the value.
func (p *Plan) Forget() {
	p.lease.Member = nil
	p.holding.forget()
}

// end fills in the plan with action on the entry e of a window, bucket or lease set. k and expiry
// are those of the new entry. frees says that the new state may have more room than the old one.
// Even if frees is false, end sets p.Frees if the new entry is of another kind than e or expires
// earlier than e, because it may then have more room, too. For an action other than Store, k,
// expiry and frees are not used.
func (p *Plan) end(e *entry.Entry, action Action, k entry.Kind, expiry limit.Instant, frees bool) {
	if p.Action = action; action != Store {
		p.Frees = action == Remove
		return
	}
	p.Kind, p.Expiry = k, min(expiry, entry.NoExpiry-1)
	p.Frees = frees || k != e.Kind || p.Expiry < e.Expiry
}

// endCell fills in the plan so that the entry e becomes a cell with the TAT next, or is removed if
// next is not after now. Frees is false for a stored cell, because no caller waits for room in a
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
