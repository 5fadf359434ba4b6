package effect

import (
	"github.com/cellserver/cellserver/ban"
	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/keyspace/object"
	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// Check returns an error if e cannot be an effect of a command. It checks only e itself, not the
// key that e changes. e may come from a file or from another server.
func Check(e Effect) error {
	switch {
	case e.Flush, !e.Patch && e.Entry.Kind == entry.None:
		return nil
	case !e.Patch:
		return CheckEntry(e.Entry)
	case !Patchable(e.Entry.Kind):
		return errEffect
	case e.Entry.Kind.IsCollection():
		return object.New(e.Entry.Kind).Apply(e.Entry.Value)
	case len(e.Entry.Value) == 0:
		return nil // an effect without a value changes only the expiry
	case e.Entry.Kind.Remembers():
		k := e.Entry.Kind.Plain()
		if isHeldDelta(e.Entry.Value) {
			_, err := readHeld(k, e.Entry.Value)
			return err
		}
		_, err := readRemembering(k, e.Entry.Value)
		return err
	}
	return checkDelta(e.Entry.Kind, e.Entry.Value)
}

// checkDelta returns an error if delta cannot be the delta of a window or a lease set of kind k.
func checkDelta(k entry.Kind, delta []byte) error {
	switch {
	case k.IsWindow():
		return slidingwindow.CheckDelta(k.WindowMode(), delta)
	case k.IsLease():
		return concurrency.CheckDelta(k.LeaseMode(), delta)
	}
	return errEffect
}

// readRemembering decodes delta, and returns an error if it cannot be the delta of a limiter that
// remembers calls. k is the kind without the calls.
func readRemembering(k entry.Kind, delta []byte) (d idempotency.Delta, err error) {
	d, err = idempotency.ReadDelta(delta)
	switch {
	case err != nil:
	case d.Whole:
		err = checkState(k, d.State)
	case d.Part:
		err = checkDelta(k, d.State)
	}
	return d, err
}

// checkState returns an error if value cannot be the state of a limiter of kind k in front of the
// calls that it remembers.
func checkState(k entry.Kind, value []byte) error {
	if !k.IsLimiter() || len(value) == 0 {
		return errEffect
	}
	return CheckEntry(entry.Entry{Kind: k, Value: value})
}

// ApplyDelta returns value with the change of delta: value is a window, a lease set, or a limiter
// that remembers calls, of kind k. value must pass [CheckEntry]; then the result does, too. delta may
// be any bytes. ApplyDelta changes value in place, or returns other memory. With an error it changes
// nothing.
func ApplyDelta(k entry.Kind, value, delta []byte) ([]byte, error) {
	switch {
	case k.Remembers():
		return applyRemembering(k.Plain(), value, delta)
	case k.IsWindow():
		return slidingwindow.ApplyDelta(k.WindowMode(), value, nil, delta)
	}
	return concurrency.ApplyDelta(k.LeaseMode(), value, nil, delta)
}

// applyRemembering is ApplyDelta for a limiter that remembers calls. k is the kind without the calls.
func applyRemembering(k entry.Kind, value, delta []byte) ([]byte, error) {
	if isHeldDelta(delta) {
		return applyHeld(k, value, delta)
	}
	d, err := readRemembering(k, delta)
	switch {
	case err != nil:
		return value, err
	case reservation.Marked(value):
		return value, nil // a later effect has replaced the value
	}
	state, _ := idempotency.Split(value)
	if state, err = nextState(k, state, d.State, d.Whole, d.Part); err != nil {
		return value, err
	}
	return d.Apply(value, state, nil), nil
}

// nextState returns the state of a limiter of kind k after a change: whole says that change is the new
// state, and part that it is a delta. The state may be changed in place.
func nextState(k entry.Kind, state, change []byte, whole, part bool) ([]byte, error) {
	switch {
	case whole && len(change) == len(state):
		copy(state, change)
	case whole:
		return change, nil
	case part:
		return ApplyDelta(k, state, change)
	}
	return state, nil
}

// CheckEntry returns an error if e cannot be the entry of a key. e may come from a file or from
// another server.
func CheckEntry(e entry.Entry) error {
	switch {
	case e.Kind == entry.String:
		return nil
	case e.Kind.IsCollection():
		return checkFlat(e.Kind, e.Value)
	case e.Kind.Remembers() && e.Kind.IsLimiter():
		return checkRemembering(e.Kind.Plain(), e.Value)
	case e.Kind == entry.Cell:
		if len(e.Value) == 0 {
			return nil
		}
		return gcra.Check(e.Value)
	case e.Kind.IsWindow():
		return slidingwindow.Check(e.Kind.WindowMode(), e.Value)
	case e.Kind.IsBucket():
		return tokenbucket.Check(e.Kind.BucketMode(), e.Value)
	case e.Kind.IsLease():
		return concurrency.Check(e.Kind.LeaseMode(), e.Value)
	case e.Kind == entry.Ban:
		return ban.Check(e.Value)
	}
	return errEffect
}

// checkFlat returns an error if flat is not a valid value for a collection of kind k.
func checkFlat(k entry.Kind, flat []byte) error {
	if len(flat) == 0 {
		return errEffect // an empty collection is never stored
	}
	switch k {
	case entry.Hash:
		return collection.CheckHash(flat)
	case entry.SortedSet:
		return collection.CheckSortedSet(flat)
	case entry.List:
		return collection.CheckList(flat)
	}
	return collection.CheckSet(flat)
}
