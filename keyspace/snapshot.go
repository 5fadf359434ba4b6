package keyspace

import (
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/yield"
)

// snapshotStep is the number of entries that a snapshot copies under one lock. Copying them takes
// some tens of microseconds at worst.
const snapshotStep = 64

// Snapshot calls add for every key that exists during the whole snapshot, and perhaps for keys that
// exist for a part of it. It may call add for a key more than once. If all effects since the
// beginning of the snapshot are replayed over these entries, the result is the state at the end of
// the journal. add is called with a shard locked: it must be quick and must not use the keyspace,
// and key and e are valid only during the call. pause is called after each step, while no shard is
// locked. An error of pause ends the snapshot, and Snapshot returns that error. After
// [Handle.Abandon] the snapshot fails.
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

// Steps is a snapshot that is made in steps. Its owner calls [Steps.Next] for each step, at any
// time. Only one goroutine at a time may use a Steps. Several snapshots may be made at the same
// time.
type Steps struct {
	ks    *Keyspace
	add   func(db int, key []byte, e entry.Entry)
	at    []stepPlace
	shard int    // index of the shard of the last call of entries
	left  int    // number of shards that have not been copied to their end
	waits bool   // argument wait of Next: whether it waits for a claim to end
	keys  []byte // keys, each followed by its database, of trees that the next steps have to copy
	ends  []int  // the offset in keys at which each key and its database end
	done  int    // number of the keys of ends that have been copied
	flat  []byte // buffer for the bytes of one tree
}

// stepPlace is the progress of a snapshot in one shard.
type stepPlace struct {
	db     int // database that is being copied; System+1 at the end
	cursor uint64
}

// Steps begins a snapshot. add is called as by [Keyspace.Snapshot]. [Steps.Next] continues the
// snapshot, and [Steps.Close] must be called at the end. Expired entries are left out, unless
// [Keyspace.SweepTo] retains them, because a later patch may prolong them.
func (ks *Keyspace) Steps(add func(db int, key []byte, e entry.Entry)) *Steps {
	return &Steps{ks: ks, add: add, at: make([]stepPlace, len(ks.shards)), shard: -1, left: len(ks.shards)}
}

// Close ends the snapshot, even if it is not complete, and frees its buffers.
func (w *Steps) Close() { w.left, w.done, w.ends, w.keys, w.flat = 0, 0, nil, nil, nil }

// Next takes the next step. It passes to add about 64 entries of one shard, or one large
// collection, which may take as long as thousands of small values. more reports whether there is
// more to copy. If wait is false and a command has locked or claimed what comes next, Next copies
// nothing and done is false. The next call then tries another shard, unless a large collection
// comes next. An error means that the snapshot could contain abandoned changes, and ends it: see
// [Handle.Abandon].
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

// entries copies some entries of the next shard that has entries left, and notes the keys of the
// trees among them. done is false if the shard is in use and Next must not wait.
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
			p.cursor = 0 // the database may have been flushed since the last step
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

// entry passes one stored entry to add, or notes its key if it is a tree.
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

// tree copies the present entry of the next noted key, which had a tree when entries found it. The
// key may hold another kind by now, or be gone. done is false if the key is in use and Next must
// not wait.
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

// lock locks and returns the shard with index i once no key with hash h is claimed. If that is not
// possible at once and Next must not wait, lock returns nil. It advances the shard's instant to the
// clock: an entry that is left out as expired cannot be found by a later command with an earlier
// instant. lock reads the clock while it has the lock, so that an instant read before
// [Keyspace.ResetInstants] is not stored after it.
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

// maxHeldFlat is the maximum capacity in bytes of a buffer that Steps keeps for the bytes of trees.
const maxHeldFlat = 1 << 20
