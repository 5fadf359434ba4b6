package keyspace

import (
	"fmt"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/limit"
)

// ApplyRecord applies a record of another keyspace, of which nothing happened later than at:
// all its effects at once, so that nobody sees half of a transaction. It sets what the record
// says, whatever the clock shows and whether or not that has expired, and no shard is at an
// earlier instant than at afterwards. Whoever watches or waits for the keys is told as by a
// change of a [Handle], and so is the observer of [Keyspace.ObserveSweep]; the journal is not.
//
// The record may be any bytes, which are checked as a whole before anything changes: after
// an error everything is as it was. There are two exceptions, where the error says what no
// record of a keyspace with the same keys can bring about: a table has no room, or a window
// or lease set grows beyond its bound. Then those effects have happened that come before.
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

// applyOne applies the only effect of a record. A patch looks at all of its delta before it
// changes anything.
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

// mostHeldBytes is the size from which on the keys of a record are claimed, as those of a
// record of very many keys are: to copy its values takes about as long.
const mostHeldBytes = 256 << 10

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
	v.now = at // whatever the last record was
	spots, set := v.spotsOf(record, n)
	var emptied []table // to be freed when nothing is locked
	defer func() {
		v.Unlock()
		for _, t := range emptied {
			t.Free()
		}
	}()
	switch {
	case flushes:
		v.LockAll()
	case len(record) > mostHeldBytes:
		v.lockSpots(&set, spots, 0)
	default:
		v.lockSpots(&set, spots, mostHeldWrites)
	}
	return v.replayAll(record, spots, &emptied)
}

// checkAll looks at all effects of a record and counts them.
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

// spotsOf returns where the n effects of record belong, in their order, and the shards of
// these. That of a flush means nothing.
func (v *Handle) spotsOf(record []byte, n int) (spots []spot, set shardSet) {
	rest := record
	return v.inOrder(n, func(int) []byte {
		e, after, _ := effect.Next(rest) // which has been checked
		rest = after
		return e.Key
	})
}

// replayAll applies the effects of a record whose keys are held or claimed, and appends the
// tables that it empties to emptied.
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

// applied tells of the keys that a record has changed.
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
