package keyspace

import (
	"fmt"

	"github.com/cellserver/cellserver/limit"
)

// Restore makes key hold e as it was stored earlier, for loading: e is checked,
// nothing is recorded or refused for want of memory, and an expiry that has passed
// leaves nothing. It may be called from several goroutines; the order of calls for
// one key is the order of truth.
func (ks *Keyspace) Restore(db int, key []byte, e Entry) error {
	if db >= ks.Databases() || len(key) > maxKeyLength {
		return fmt.Errorf("database %d or a key of %d bytes is out of range", db, len(key))
	}
	if err := CheckEntry(e); err != nil {
		return err
	}
	h := ks.hash(key)
	s := &ks.shards[int(h>>ks.shift)]
	s.mu.Lock()
	defer s.mu.Unlock()
	var p place
	s.find(&p, db, h, key)
	switch {
	case e.Expiry <= s.last:
		if p.old != None {
			s.drop(&p)
		}
	case p.old != None:
		d := &s.dbs[db]
		d.count.add(p.old, p.oldExpiry, -1)
		d.count.add(e.Kind, e.Expiry, 1)
		d.t.store(p.r, e)
	default:
		return s.insert(&p, key, e)
	}
	return nil
}

// Apply replays an effect that was recorded earlier, as [Keyspace.Restore].
func (ks *Keyspace) Apply(e Effect) error {
	switch {
	case e.DB >= ks.Databases():
		return fmt.Errorf("database %d is out of range", e.DB)
	case e.Flush:
		ks.dropAll(e.DB)
		return nil
	case e.Entry.Kind == None:
		// Nothing expires at the first instant, so this only deletes.
		e.Entry = Entry{Kind: String, Expiry: limit.MinInstant}
	}
	return ks.Restore(e.DB, e.Key, e.Entry)
}

func (ks *Keyspace) dropAll(db int) {
	for i := range ks.shards {
		s := &ks.shards[i]
		s.mu.Lock()
		t := s.clear(db)
		s.mu.Unlock()
		if t != nil {
			t.free()
		}
	}
}

// snapshotStep is how many entries are copied under one lock, some tens of
// microseconds at worst.
const snapshotStep = 64

// Snapshot calls add for every key that exists from its beginning to its end, and
// for others that exist meanwhile, each perhaps more than once; replaying, after
// what it gave, all effects since it began makes the state of the journal's end.
// add is called with a shard locked and must be quick; between locks pause is
// called, whose error ends the snapshot.
func (ks *Keyspace) Snapshot(add func(db int, key []byte, e Entry), pause func() error) error {
	v := ks.NewView()
	defer v.Close()
	type place struct {
		db     int
		cursor uint64
	}
	at := make([]place, len(ks.shards))
	for left := len(at); left > 0; {
		v.Refresh()
		for i := range at {
			p := &at[i]
			if p.db == ks.Databases() {
				continue
			}
			p.cursor, _ = v.scanShard(i, p.db, p.cursor, snapshotStep, func(key []byte, e Entry) { add(p.db, key, e) })
			if p.cursor == 0 {
				p.db++
			}
			if p.db == ks.Databases() {
				left--
			}
			if ks.abandoned.Load() {
				return errAbandoned
			}
			if err := pause(); err != nil {
				return err
			}
		}
	}
	return nil
}
