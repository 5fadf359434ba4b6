package keyspace

import (
	"fmt"

	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/keyspace/entry"
	"github.com/cellserver/cellserver/limit"
)

// Restore makes key hold e as it was stored earlier, for loading: e is checked,
// nothing is recorded or refused for want of memory, and an expiry that has passed
// leaves nothing that could be seen. It may be called from several goroutines; the order of calls for
// one key is the order of truth.
func (ks *Keyspace) Restore(db int, key []byte, e entry.Entry) error {
	switch {
	case db >= ks.Databases():
		return ks.noDatabase(db)
	case len(key) > entry.MaxKeyLength:
		return fmt.Errorf("a key of %d bytes is too long", len(key))
	}
	if err := effect.CheckEntry(e); err != nil {
		return err
	}
	h := ks.hash(key)
	s := &ks.shards[int(h>>ks.shift)]
	s.lockBare()
	defer s.mu.Unlock()
	var p place
	s.find(&p, db, h, key)
	switch {
	case e.Expiry <= s.last && !effect.Patchable(e.Kind):
		if p.old != entry.None {
			s.drop(&p)
		}
	default:
		return s.restore(&p, key, e)
	}
	return nil
}

// Apply replays an effect that was recorded earlier, as [Keyspace.Restore].
func (ks *Keyspace) Apply(e effect.Effect) error {
	switch {
	case e.DB >= ks.Databases():
		return ks.noDatabase(e.DB)
	case e.Flush:
		ks.dropAll(e.DB)
		return nil
	case e.Patch:
		return ks.patch(&e)
	case e.Entry.Kind == entry.None:
		// Nothing expires at the first instant, so this only deletes.
		e.Entry = entry.Entry{Kind: entry.String, Expiry: limit.MinInstant}
	}
	return ks.Restore(e.DB, e.Key, e.Entry)
}

// noDatabase is the error for something of a database that there is not.
func (ks *Keyspace) noDatabase(db int) error {
	return fmt.Errorf("database %d is beyond the %d that there are, which is what the option databases says", db, ks.Databases())
}

func (ks *Keyspace) dropAll(db int) {
	for i := range ks.shards {
		s := &ks.shards[i]
		s.lockBare()
		t := s.clear(db)
		s.mu.Unlock()
		if t != nil {
			t.Free()
		}
	}
}
