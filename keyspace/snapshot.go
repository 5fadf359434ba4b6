package keyspace

import (
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/yield"
)

// snapshotStep is the number of entries that are copied under one lock, which takes some tens of
// microseconds at worst.
const snapshotStep = 64

// Snapshot calls add for every key that exists from its beginning to its end, and for other keys
// that exist at some time meanwhile; for a key perhaps more than once. Replaying all effects since
// its beginning over these entries gives the state at the end of the journal. add is called with a
// shard locked and must be quick. pause is called between locks, and its error ends the snapshot.
func (ks *Keyspace) Snapshot(add func(db int, key []byte, e entry.Entry), pause func() error) error {
	w := ks.Steps(add)
	defer w.Close()
	for more := true; more; {
		var err error
		if _, more, err = w.Next(true); err != nil {
			return err
		}
		yield.Thread()
		if err = pause(); err != nil {
			return err
		}
	}
	return nil
}

// Steps makes a snapshot step by step, whenever its owner has time for a step. Only one goroutine
// at a time may use it; several snapshots may be made at the same time.
type Steps struct {
	ks    *Keyspace
	add   func(db int, key []byte, e entry.Entry)
	at    []stepPlace
	shard int    // of the last step
	left  int    // number of shards that have not been copied to their end
	waits bool   // argument of Next
	keys  []byte // keys of trees that a step has found and the next steps copy
	ends  []int  // where each key ends in keys
	done  int    // number of these keys that have been copied
	flat  []byte // buffer for the bytes of a tree
}

// stepPlace is the progress of a snapshot in one shard.
type stepPlace struct {
	db     int
	cursor uint64
}

// Steps begins a snapshot as [Keyspace.Snapshot] does; [Steps.Next] continues it. Expired entries
// are left out, unless [Keyspace.SweepTo] retains them: a patch may prolong them.
func (ks *Keyspace) Steps(add func(db int, key []byte, e entry.Entry)) *Steps {
	return &Steps{ks: ks, add: add, at: make([]stepPlace, len(ks.shards)), shard: -1, left: len(ks.shards)}
}

// Close abandons the rest of the snapshot.
func (w *Steps) Close() { w.left, w.done, w.ends, w.keys, w.flat = 0, 0, nil, nil, nil }

// Next gives add up to 64 entries or somewhat more of one shard, or one large collection, which may
// take as long as thousands of values. more reports whether there is more to copy. If wait is false
// and a command holds what comes next, Next does nothing and done is false; the next call tries
// another shard, if the order allows that. An error ends the snapshot, which could contain
// abandoned changes: see [Handle.Abandon].
func (w *Steps) Next(wait bool) (done, more bool, err error) {
	w.waits, done = wait, true
	switch {
	case w.done < len(w.ends):
		done = w.tree()
	case w.left > 0:
		done = w.entries()
	}
	if w.ks.abandoned.Load() {
		return false, false, errAbandoned
	}
	return done, w.left > 0 || w.done < len(w.ends), nil
}

// entries copies some entries of the next shard that has entries left.
func (w *Steps) entries() (done bool) {
	for more := true; more; more = w.at[w.shard].db == System+1 {
		w.shard = (w.shard + 1) % len(w.at)
	}
	w.keys, w.ends, w.done = w.keys[:0], w.ends[:0], 0
	p := &w.at[w.shard]
	s := w.lock(w.shard, anyHash)
	if s == nil {
		return false
	}
	defer s.mu.Unlock()
	for ; p.db < len(s.dbs); p.db++ {
		t := s.dbs[p.db].t
		if t == nil {
			p.cursor = 0 // the database may have been flushed since
			continue
		}
		if p.cursor = t.Scan(p.cursor, snapshotStep, func(key []byte, e entry.Entry) { w.entry(s, p.db, key, e) }); p.cursor == 0 {
			p.db++
		}
		break
	}
	if p.db == len(s.dbs) {
		w.left--
	}
	return true
}

func (w *Steps) entry(s *shard, db int, key []byte, e entry.Entry) {
	switch {
	case s.removes(e.Expiry):
	case isTree(e.Kind):
		w.keys = append(w.keys, key...)
		w.keys = append(w.keys, byte(db))
		w.ends = append(w.ends, len(w.keys))
	default:
		w.add(db, key, e)
	}
}

// tree copies the present entry of the next key that had a tree when it was found. The entry may be
// of another kind by now.
func (w *Steps) tree() (done bool) {
	begin := 0
	if w.done > 0 {
		begin = w.ends[w.done-1]
	}
	end := w.ends[w.done] - 1
	key, db := w.keys[begin:end], int(w.keys[end])
	h := w.ks.hash(key)
	s := w.lock(int(h>>w.ks.shift), h)
	if s == nil {
		return false
	}
	defer s.mu.Unlock()
	w.done++
	t := s.dbs[db].t
	if t == nil {
		return true
	}
	var e entry.Entry
	_, e.Kind, e.Expiry, e.Value = t.Find(uint32(h), key)
	if e.Kind == entry.None || s.removes(e.Expiry) {
		return true
	}
	if isTree(e.Kind) {
		e = s.whole(db, e, w.flat)
		if w.flat = e.Value[:0]; cap(w.flat) > maxHeldFlat {
			w.flat = nil
		}
	}
	w.add(db, key, e)
	return true
}

// lock locks a shard once no key of hash h is claimed, or returns nil. It advances the shard's
// instant to the clock: then nothing happens there any more at an instant at which an entry was
// alive that is left out as expired. It reads the clock under the lock, so that a reading from
// before [Keyspace.ResetInstants] cannot be stored after it.
func (w *Steps) lock(i int, h uint64) *shard {
	s := &w.ks.shards[i]
	switch {
	case w.waits:
		s.lockFree(h)
	case !s.mu.TryLock():
		return nil
	case s.claimed && s.claim.has(h):
		s.mu.Unlock()
		return nil
	default:
		s.bare()
	}
	s.last = max(s.last, w.ks.clock.Now())
	return s
}

// maxHeldFlat is the largest buffer in bytes that Steps keeps for the bytes of trees.
const maxHeldFlat = 1 << 20
