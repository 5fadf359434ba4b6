package keyspace

import "github.com/cellserver/cellserver/keyspace/entry"

// snapshotStep is how many entries are copied under one lock, some tens of
// microseconds at worst.
const snapshotStep = 64

// Snapshot calls add for every key that exists from its beginning to its end, and
// for others that exist meanwhile, each perhaps more than once; replaying, after
// what it gave, all effects since it began makes the state of the journal's end.
// add is called with a shard locked and must be quick; between locks pause is
// called, whose error ends the snapshot.
func (ks *Keyspace) Snapshot(add func(db int, key []byte, e entry.Entry), pause func() error) error {
	w := snapshot{v: ks.NewHandle(), add: add}
	defer w.v.Close()
	at := make([]snapshotPlace, len(ks.shards))
	for left := len(at); left > 0; {
		w.v.Refresh()
		for i := range at {
			p := &at[i]
			if p.db == ks.Databases() {
				continue
			}
			if err := w.step(i, p, pause); err != nil {
				return err
			}
			if p.db == ks.Databases() {
				left--
			}
		}
	}
	return nil
}

// snapshotPlace is where a snapshot has got to in one shard.
type snapshotPlace struct {
	db     int
	cursor uint64
}

// snapshot is one that is being made.
type snapshot struct {
	v    *Handle
	add  func(db int, key []byte, e entry.Entry)
	keys []byte // of the trees that a step has met
	ends []int  // where each ends
	flat []byte // the bytes of a tree
}

// step copies some entries of shard i. A tree is copied under a lock of its own, for
// it may take as long as thousands of values.
func (w *snapshot) step(i int, p *snapshotPlace, pause func() error) error {
	w.keys, w.ends = w.keys[:0], w.ends[:0]
	p.cursor, _ = w.v.scanShard(i, p.db, p.cursor, snapshotStep, func(_ *shard, key []byte, e entry.Entry) {
		if isTree(e.Kind) {
			w.keys = append(w.keys, key...)
			w.ends = append(w.ends, len(w.keys))
			return
		}
		w.add(p.db, key, e)
	})
	if err := w.pause(pause); err != nil {
		return err
	}
	begin := 0
	for _, end := range w.ends {
		w.tree(p.db, w.keys[begin:end])
		if err := w.pause(pause); err != nil {
			return err
		}
		begin = end
	}
	if p.cursor == 0 {
		p.db++
	}
	return nil
}

func (w *snapshot) pause(pause func() error) error {
	if w.v.ks.abandoned.Load() {
		return errAbandoned
	}
	giveWay()
	return pause()
}

// tree copies what key holds by now, which need not be a tree any more.
func (w *snapshot) tree(db int, key []byte) {
	h := w.v.ks.hash(key)
	s := w.v.lock(h)
	defer w.v.unlock(s)
	e := s.get(db, h, key)
	if e.Kind == entry.None {
		return
	}
	if isTree(e.Kind) {
		e = s.whole(db, e, w.flat)
		if w.flat = e.Value[:0]; cap(w.flat) > maxHeldFlat {
			w.flat = nil
		}
	}
	w.add(db, key, e)
}

// maxHeldFlat is the largest buffer for the bytes of trees that a snapshot keeps.
const maxHeldFlat = 1 << 20
