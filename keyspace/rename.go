package keyspace

import (
	"bytes"

	"github.com/cellserver/cellserver/keyspace/entry"
	"github.com/cellserver/cellserver/keyspace/object"
)

// Rename gives what from holds, and its expiry, to to. With nx it leaves an
// existing to alone, and renamed is false. found reports whether from exists.
func (v *View) Rename(db int, from, to []byte, nx bool) (renamed, found bool) {
	hf, ht := v.ks.hash(from), v.ks.hash(to)
	var set shardSet
	set.add(int(hf >> v.ks.shift))
	set.add(int(ht >> v.ks.shift))
	defer v.releaseHere(v.holdHere(&set, func(c *claim) bool { return c.has(hf) || c.has(ht) }))

	src := v.lock(hf)
	var p, target place
	src.find(&p, db, hf, from)
	if p.e.Kind == entry.None {
		return false, false
	}
	dst := v.lock(ht)
	if bytes.Equal(from, to) {
		return !nx, true
	}
	dst.find(&target, db, ht, to)
	if nx && target.e.Kind != entry.None {
		return false, true
	}
	e := p.e
	e.Value = bytes.Clone(e.Value)
	var o object.Object
	if isTree(e.Kind) {
		t := src.tree(db, e.Value)
		o, t.o = t.o, nil // it moves, and is not dropped
	}
	src.remove(&p, from)
	if o != nil {
		e.Value = dst.plant(e.Value[:0], db, o)
	}
	// Found again, since removing may have moved it.
	target = place{}
	dst.find(&target, db, ht, to)
	dst.freed(db, to)
	return dst.move(&target, to, e), true
}
