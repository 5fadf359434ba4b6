package decide

import (
	"bytes"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
)

// administer decides the operation c on e and fills in r and the plan. The error is
// [limit.ErrWrongType] if the operation is Text, Describe or Members and does not fit the kind of
// e, and errNotOne if the operation is about all keys.
func (p *Plan) administer(e *entry.Entry, now limit.Instant, c *AdminCall, r *AdminResult) (err error) {
	p.Action, p.by, p.remembers = Keep, Admin, false
	*r = AdminResult{Found: e.Kind != entry.None}
	switch c.Op {
	case Exists:
	case Delete:
		if r.Done = r.Found; r.Done {
			p.Action, p.Frees = Remove, true
		}
	case Expiry:
		if r.HasExpiry = r.Found && e.Expiry != entry.NoExpiry; r.HasExpiry {
			r.Expiry = e.Expiry
		}
	case Expire:
		at, action := Reschedule(e, now, c.At, c.Condition)
		r.Done = p.reschedule(e, action, at)
	case Persist:
		at, action := Forever(e)
		r.Done = p.reschedule(e, action, at)
	case Type:
		r.Text = e.Kind.Type()
	case Text:
		r.Text, err = textOf(e)
	case Describe:
		r.Fields, err = fieldsOf(e, now, c.By)
	case Members:
		r.Members, r.Next, err = membersOf(e, now, c.After, c.Count)
	default:
		err = errNotOne
	}
	return err
}

// Reschedule decides EXPIRE on e, with the new expiry at and the condition cond. It returns Keep if
// there is no key or cond forbids the change, Remove if at is not after now, and otherwise Store
// with the new expiry. An at of [entry.NoExpiry] becomes the instant before it. The state of a
// limiter does not change. The new expiry lasts until the next call that changes the state; that
// call sets the expiry that follows from the state.
func Reschedule(e *entry.Entry, now, at limit.Instant, cond ExpireCondition) (limit.Instant, Action) {
	at = min(at, entry.NoExpiry-1)
	switch {
	case e.Kind == entry.None || !cond.allows(e.Expiry, at):
		return 0, Keep
	case at <= now:
		return 0, Remove
	}
	return at, Store
}

// Forever decides PERSIST on e. It returns Store with [entry.NoExpiry], or Keep if there is no key
// or the key has no expiry.
func Forever(e *entry.Entry) (limit.Instant, Action) {
	if e.Kind == entry.None || e.Expiry == entry.NoExpiry {
		return 0, Keep
	}
	return entry.NoExpiry, Store
}

// allows reports whether an expiry may change from old to the instant at under the condition c.
func (c ExpireCondition) allows(old, at limit.Instant) bool {
	switch {
	case c&ExpireIfNone != 0 && old != entry.NoExpiry,
		c&ExpireIfAny != 0 && old == entry.NoExpiry,
		c&ExpireIfLater != 0 && at <= old,
		c&ExpireIfEarlier != 0 && at >= old:
		return false
	}
	return true
}

// reschedule fills in the plan for action on e, with the new expiry at, and reports whether action
// changes e.
func (p *Plan) reschedule(e *entry.Entry, action Action, at limit.Instant) bool {
	p.Action, p.Kind, p.Expiry = action, e.Kind, at
	p.Frees = action == Remove || action == Store && at < e.Expiry
	if e.Kind == entry.Cell {
		p.tat = entry.CellTAT(e)
	}
	return action != Keep
}

// textOf returns what GET replies for e: "" for an absent key, and [limit.ErrWrongType] unless e is
// a string or a cell.
func textOf(e *entry.Entry) (string, error) {
	switch e.Kind.Plain() {
	case entry.None:
		return "", nil
	case entry.String:
		return string(e.Value), nil
	case entry.Cell:
		return string(gcra.AppendDecimal(nil, entry.CellTAT(e))), nil
	}
	return "", limit.ErrWrongType
}

// fieldsOf returns the fields that RL.INFO shows of e: the fields of [Tell], and the expiry in
// milliseconds since the Unix epoch, or -1 if there is none. fields is nil for an absent key. It
// returns the error of Tell.
func fieldsOf(e *entry.Entry, now limit.Instant, by any) (fields []Field, err error) {
	if e.Kind == entry.None {
		return nil, nil
	}
	note := func(name, text string, number int64, isText bool) {
		fields = append(fields, Field{Name: name, Text: text, Number: number, IsText: isText})
	}
	if err = Tell(e, now, by, note); err != nil {
		return nil, err
	}
	at := int64(-1)
	if e.Expiry != entry.NoExpiry {
		at = int64(e.Expiry) / 1e6
	}
	note("expire-at", "", at, false)
	return fields, nil
}

// membersOf returns up to most members that hold a lease in the lease set e at now, in the order of
// their names, and the name after which the next step begins; nil at the end. It begins after the name
// after, or with the first one if after is nil. The error is [limit.ErrWrongType] if e is of another
// kind. The result does not refer to e.
func membersOf(e *entry.Entry, now limit.Instant, after []byte, most int) (members []Member, next []byte, err error) {
	set, _ := entry.Plain(e)
	switch {
	case set.Kind == entry.None:
		return nil, nil, nil
	case !set.Kind.IsLease():
		return nil, nil, limit.ErrWrongType
	}
	last, more := concurrency.List(set.Kind.LeaseMode(), set.Value, now, after, after == nil, most,
		func(name []byte, until limit.Instant, places int64) {
			members = append(members, Member{Name: bytes.Clone(name), Until: until, Places: places})
		})
	if more {
		next = append([]byte{}, last...) // next must not be nil, even if the name is empty
	}
	return members, next, nil
}
