package effect

import (
	"encoding/binary"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/tokenbucket"
)

// checkRemembering returns an error if value is not a valid value of a limiter of kind k with remembered calls,
// reservations, or both.
func checkRemembering(k entry.Kind, value []byte) (err error) {
	state, records := value, true
	if reservation.Marked(value) {
		f, ok := formOf(k)
		if !ok {
			return errEffect
		}
		if state, records, err = reservation.Check(value, f); err != nil {
			return err
		}
	}
	if records {
		if state, err = idempotency.Check(state); err != nil {
			return err
		}
	}
	return checkState(k, state)
}

// formOf returns the form of the reservations of a limiter of kind k. ok is false if it can have none.
func formOf(k entry.Kind) (f reservation.Form, ok bool) {
	switch {
	case k.IsWindow():
		return reservation.Window, true
	case k.IsBucket() && k.BucketMode() == tokenbucket.Greedy:
		return reservation.Bucket, true
	case k.IsBucket():
		return reservation.Converted, true
	}
	return 0, false
}

// isHeldDelta reports whether delta describes a change of a limiter with reservations.
func isHeldDelta(delta []byte) bool { return len(delta) > 0 && delta[0] >= reservation.DeltaMark }

// held is a decoded delta of a limiter with reservations: see [reservation.DeltaMark].
type held struct {
	reservations []byte
	hasRecords   bool
	records      idempotency.Delta
	whole, part  bool
	state        []byte
}

// readHeld decodes delta, and returns an error if it cannot be the delta of a limiter of kind k with
// reservations.
func readHeld(k entry.Kind, delta []byte) (d held, err error) {
	f, ok := formOf(k)
	if !ok {
		return d, errEffect
	}
	flags := delta[0] - reservation.DeltaMark
	d.hasRecords, d.whole, d.part = flags&reservation.DeltaRecords != 0, flags&reservation.DeltaWhole != 0, flags&reservation.DeltaPart != 0
	if flags > reservation.DeltaRecords|reservation.DeltaWhole|reservation.DeltaPart || d.whole && d.part {
		return d, errEffect
	}
	if d.reservations, d.state, err = reservation.ReadDelta(delta[1:], f); err != nil {
		return d, err
	}
	if d.hasRecords {
		n, size := binary.Uvarint(d.state)
		if size <= 0 || n > uint64(len(d.state)-size) {
			return d, errEffect
		}
		records := d.state[size : size+int(n)]
		d.state = d.state[size+int(n):]
		if d.records, err = idempotency.ReadDelta(records); err != nil {
			return d, err
		}
		if d.records.Whole || d.records.Part {
			return d, errEffect
		}
	}
	switch {
	case d.whole:
		err = checkState(k, d.state)
	case d.part:
		err = checkDelta(k, d.state)
	case len(d.state) > 0:
		err = errEffect
	}
	return d, err
}

// applyHeld is ApplyDelta for a delta of a limiter of kind k with reservations. If value has none, or its
// records begin or end, a later effect has replaced the value, which stays as it is.
func applyHeld(k entry.Kind, value, delta []byte) ([]byte, error) {
	d, err := readHeld(k, delta)
	switch {
	case err != nil:
		return value, err
	case !reservation.Marked(value):
		return value, nil
	}
	rest, stored, records := reservation.Split(value)
	if records != d.hasRecords {
		return value, nil
	}
	var s reservation.Section
	s.Load(stored)
	f, _ := formOf(k)
	if !s.ApplyDelta(d.reservations, f) {
		return value, nil
	}
	state := rest
	if records {
		state, _ = idempotency.Split(rest)
	}
	if state, err = nextState(k, state, d.state, d.whole, d.part); err != nil {
		return value, err
	}
	if records {
		state = d.records.Apply(rest, state, nil)
	}
	return s.Append(append(make([]byte, 0, len(state)+s.Size()), state...)), nil
}
