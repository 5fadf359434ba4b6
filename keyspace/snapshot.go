package keyspace

import (
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/yield"
)

// snapshotStep is how many entries are copied under one lock, some tens of
// microseconds at worst.
const snapshotStep = 64

// Snapshot calls add for every key that exists from its beginning to its end, and
// for others that exist meanwhile, each perhaps more than once; replaying, after
// what it gave, all effects since it began makes the state of the journal's end.
// add is called with a shard locked and must be quick; between locks pause is
// called, whose error ends the snapshot.
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

// Steps are a snapshot that is made step by step, whenever its owner has time for one. They
// are used by one goroutine at a time; any number of them may be under way.
type Steps struct {
	ks    *Keyspace
	add   func(db int, key []byte, e entry.Entry)
	at    []stepPlace
	shard int    // of the step before
	left  int    // shards that have not been seen to their end
	waits bool   // for commands: see Next
	keys  []byte // of the trees that a step has met and the next ones copy
	ends  []int  // where each ends
	done  int    // how many of them have been copied
	flat  []byte // the bytes of a tree
}

// stepPlace is where steps have got to in one shard.
type stepPlace struct {
	db     int
	cursor uint64
}

// Steps begins what [Keyspace.Snapshot] does, to be gone on with by [Steps.Next]. What has
// expired is left out, unless [Keyspace.SweepTo] keeps it: a patch may prolong it.
func (ks *Keyspace) Steps(add func(db int, key []byte, e entry.Entry)) *Steps {
	return &Steps{ks: ks, add: add, at: make([]stepPlace, len(ks.shards)), shard: -1, left: len(ks.shards)}
}

// Close gives up what is left to do.
func (w *Steps) Close() { w.left, w.done, w.ends, w.keys, w.flat = 0, 0, nil, nil, nil }

// Next gives add up to 64 entries or somewhat more of one shard, or one large collection,
// which may take as long as thousands of values. It reports whether there is more to come.
// Unless it waits, it does nothing, and is not done, while a command has what comes next; the
// next call tries another shard, if that may come before. An error ends the snapshot, which
// could hold what must never have happened.
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

// entries copies some entries of the next shard that has any left.
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
			p.cursor = 0 // it may have been flushed since
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

// tree copies what the next of the keys that had a tree holds by now, which need not be one
// any more.
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

// lock locks a shard once nobody claims a key of hash h, or returns nil. Nothing happens there any
// more at an instant at which something lived that is left out now. The clock is read under the
// lock: so nothing of before [Keyspace.ResetInstants] comes behind it.
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

// maxHeldFlat is the largest buffer for the bytes of trees that steps keep.
const maxHeldFlat = 1 << 20
