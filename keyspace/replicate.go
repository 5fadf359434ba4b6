package keyspace

import (
	"fmt"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/limit"
)

// ApplyRecord applies a record of another keyspace. All effects of the record become visible at
// once, so that no reader sees half of a transaction. ApplyRecord stores the entries of the record
// whatever the clock shows, even entries that have expired. at is the latest instant of the
// record's effects. Afterwards the shards of the record's keys are at that instant or a later one.
// The watchers and waiters of the keys are notified as by a change of a [Handle], and so is the
// observer of [Keyspace.ObserveSweep]. The journal gets nothing.
//
// record may be any bytes. All of it is checked before anything changes. So after an error the
// keyspace is as it was, with two exceptions: a table has no room, or a window or lease set would
// grow beyond its bound. Then the effects before the failing one have happened. A record of a
// keyspace with the same keys causes neither.
//
// Only one goroutine at a time may call ApplyRecord. Records must be applied in the order in which
// the other keyspace made them.
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

// applyOne applies e, the only effect of a record, which is not a flush. at is the instant of
// ApplyRecord. applyOne checks the entry first; a patch checks its whole delta before it changes
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

// maxHeldBytes is the size of a record in bytes beyond which its keys are claimed, and not locked.
// Copying the values of such a record takes about as long as changing maxHeldWrites keys.
const maxHeldBytes = 256 << 10

// applySeveral applies a record of several effects, or of one flush. at is the instant of
// ApplyRecord. applySeveral checks all effects first, then locks or claims all keys of the record
// and applies the effects in order.
func (ks *Keyspace) applySeveral(record []byte, at limit.Instant) error {
	n, flushes, err := ks.checkAll(record)
	if err != nil {
		return err
	}
	ks.applier.mu.Lock()
	defer ks.applier.mu.Unlock()
	v := ks.applier.handle
	v.renew()
	v.now = at // at is the instant of the primary, even if the handle's last record was later
	spots, set := v.spotsOf(record, n)
	var emptied []table // the tables of flushed databases; their memory is freed after all locks are released
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

// checkAll checks all effects of a record. n is their number, and flushes is true if one of them is
// a flush. The error is about the first invalid effect.
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

// spotsOf returns spots, one for the key of each of the n effects of record in the order of the
// effects, and the set of the shards of these keys. The spot of a flush has no meaning.
func (v *Handle) spotsOf(record []byte, n int) (spots []spot, set shardSet) {
	rest := record
	return v.inOrder(n, func(int) []byte {
		e, after, _ := effect.Next(rest) // the record has been checked
		rest = after
		return e.Key
	})
}

// replayAll applies the effects of record in order. Their keys are locked or claimed, and spots has
// the spots of these keys. The tables that flushes detach are appended to emptied, and the caller
// frees them.
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

// applied notifies the observer of the changes of an applied record. No key is locked.
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
