package decide

import (
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
)

// administer decides the operation c on e.
func (p *Plan) administer(e *entry.Entry, now limit.Instant, c *AdminCall, r *AdminResult) (err error) {
	p.Action, p.by = Keep, Admin
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
	default:
		err = errNotOne
	}
	return err
}

// Reschedule decides EXPIRE with an instant and a condition on e. For Store it also returns the new
// expiry. An instant in the past removes the key. The state of a limiter does not change: only its
// expiry does, until the next call that consumes something sets the expiry that follows from the
// state again.
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

// Forever decides PERSIST on e. For Store it also returns the new expiry, which is never.
func Forever(e *entry.Entry) (limit.Instant, Action) {
	if e.Kind == entry.None || e.Expiry == entry.NoExpiry {
		return 0, Keep
	}
	return entry.NoExpiry, Store
}

// allows reports whether an expiry may change from old to at.
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

// reschedule plans another expiry for e, and reports whether that changes anything.
func (p *Plan) reschedule(e *entry.Entry, action Action, at limit.Instant) bool {
	p.Action, p.Kind, p.Expiry = action, e.Kind, at
	p.Frees = action == Remove || action == Store && at < e.Expiry
	if e.Kind == entry.Cell {
		p.tat = entry.CellTAT(e)
	}
	return action != Keep
}

// textOf returns the reply of GET for e.
func textOf(e *entry.Entry) (string, error) {
	switch e.Kind {
	case entry.None:
		return "", nil
	case entry.String:
		return string(e.Value), nil
	case entry.Cell:
		return string(gcra.AppendDecimal(nil, entry.CellTAT(e))), nil
	}
	return "", limit.ErrWrongType
}

// fieldsOf returns the fields of RL.INFO for e: see [Tell].
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
