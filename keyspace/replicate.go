package keyspace

import (
	"fmt"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/limit"
)

// ApplyRecord applies a record of another keyspace. All its effects become visible at once, so that
// no reader sees half of a transaction. It stores what the record says, whatever the clock shows
// and whether or not that has expired. No effect of the record is later than at, and afterwards the
// shards of its keys are at no earlier instant than at. The watchers and waiters of the keys are
// notified as by a change of a [Handle], and so is the observer of [Keyspace.ObserveSweep]; the
// journal is not.
//
// record may be any bytes. It is checked as a whole before anything changes: after an error the
// keyspace is as it was. There are two exceptions, which no record of a keyspace with the same keys
// can cause: a table has no room, or a window or lease set grows beyond its bound. Then the effects
// that come before the failing one have happened.
//
// Records are applied in the order of the calls, by one goroutine at a time.
func (ks *Keyspace) ApplyRecord(record []byte, at limit.Instant) error {
	e, rest, err := effect.Next(record)
	switch {
	case err != nil:
	case len(rest) == 0 && !e.Flush:
		err = ks.applyOne(&e, at)
	default:
		err = ks.applySeveral(record, at)
	}
	if err != nil {
		return fmt.Errorf("applying a record of %d bytes: %w", len(record), err)
	}
	if o := ks.besides(); o != nil {
		o.applied(record)
	}
	return nil
}

// applyOne applies the only effect of a record. A patch checks its whole delta before it changes
// anything.
func (ks *Keyspace) applyOne(e *effect.Effect, at limit.Instant) error {
	if !ks.HasDatabase(e.DB) {
		return ks.noDatabase(e.DB)
	}
	if !e.Patch && e.Entry.Kind != entry.None {
		if err := effect.CheckEntry(e.Entry); err != nil {
			return err
		}
	}
	h, o := ks.hash(e.Key), treeOf(e)
	s := &ks.shards[int(h>>ks.shift)]
	s.lockFree(h)
	defer s.mu.Unlock()
	s.last = max(s.last, at)
	return s.replay(e, h, o)
}

// maxHeldBytes is the size of a record in bytes beyond which its keys are claimed, as those of a
// record with very many keys are: copying its values takes about as long.
const maxHeldBytes = 256 << 10

// applySeveral applies a record of several effects.
func (ks *Keyspace) applySeveral(record []byte, at limit.Instant) error {
	n, flushes, err := ks.checkAll(record)
	if err != nil {
		return err
	}
	ks.applier.mu.Lock()
	defer ks.applier.mu.Unlock()
	v := ks.applier.handle
	v.renew()
	v.now = at // even if the last record was later
	spots, set := v.spotsOf(record, n)
	var emptied []table // freed when nothing is locked
	defer func() {
		v.Unlock()
		for _, t := range emptied {
			t.Free()
		}
	}()
	switch {
	case flushes:
		v.LockAll()
	case len(record) > maxHeldBytes:
		v.lockSpots(&set, spots, 0)
	default:
		v.lockSpots(&set, spots, maxHeldWrites)
	}
	return v.replayAll(record, spots, &emptied)
}

// checkAll checks all effects of a record, counts them and reports whether one is a flush.
func (ks *Keyspace) checkAll(record []byte) (n int, flushes bool, err error) {
	for ; len(record) > 0; n++ {
		var e effect.Effect
		if e, record, err = effect.Next(record); err != nil {
			return 0, false, err
		}
		if !ks.HasDatabase(e.DB) {
			return 0, false, ks.noDatabase(e.DB)
		}
		if err = effect.Check(e); err != nil {
			return 0, false, err
		}
		flushes = flushes || e.Flush
	}
	return n, flushes, nil
}

// spotsOf returns the spots of the n effects of record, in their order, and the set of their
// shards. The spot of a flush has no meaning.
func (v *Handle) spotsOf(record []byte, n int) (spots []spot, set shardSet) {
	rest := record
	return v.inOrder(n, func(int) []byte {
		e, after, _ := effect.Next(rest) // which has been checked
		rest = after
		return e.Key
	})
}

// replayAll applies the effects of a record whose keys are locked or claimed, and appends the
// tables that it detaches to emptied.
func (v *Handle) replayAll(record []byte, spots []spot, emptied *[]table) error {
	for i := 0; len(record) > 0; i++ {
		e, rest, err := effect.Next(record)
		if err != nil {
			return err
		}
		record = rest
		if e.Flush {
			v.ks.bareAll()
			*emptied = v.ks.clear(e.DB, *emptied)
			continue
		}
		s := v.visited(spots[i].hash)
		s.bare()
		if err = s.replay(&e, spots[i].hash, treeOf(&e)); err != nil {
			return err
		}
		if i%maxPrefetch == 0 {
			v.leave()
		}
	}
	return nil
}

// applied notifies the observer of the keys that a record has changed.
func (o *sharedObserver) applied(record []byte) {
	for len(record) > 0 {
		e, rest, err := effect.Next(record)
		switch {
		case err != nil:
			return
		case e.DB == System:
		case e.Flush:
			o.Flushed()
		default:
			o.Changed(e.Key, false)
		}
		record = rest
	}
	o.Unlocked()
}
