package effect

import "github.com/cellserver/cellserver/entry"

// A script may change a key any number of times, but only the state after the last change matters
// when the log is loaded. So a record that has become long is condensed: effects that a later
// effect makes void are removed. Then its size is about that of the changed keys, however often
// they were changed.

// MaxRecord is the maximum size of a record in bytes, without effects that later ones make void. A
// record is kept as a whole or not at all, and loading needs all of it in memory.
const MaxRecord = 64 << 20

// leastCondensed is the size in bytes from which on a record is condensed.
const leastCondensed = 4 << 20

// Due reports whether the record should be condensed: each time its size has doubled, so that
// condensing costs a few times as much as recording; earlier if the values that it refers to grow,
// which may be void and are in memory only for the record; and before it is full.
func (r *Record) Due() bool {
	if r.long-r.condensed.long >= max(leastCondensed, 4*len(r.buf)) {
		return true
	}
	if len(r.buf) >= max(leastCondensed, 2*r.condensed.buf) {
		return true
	}
	last := r.condensed.buf + r.condensed.long
	return r.Size() >= max(MaxRecord, last+last/8)
}

// Worthwhile reports whether a complete record should be condensed once more.
func (r *Record) Worthwhile() bool {
	last := r.condensed.buf + r.condensed.long
	return r.Size() >= leastCondensed && r.Size() > last+last/4
}

// keyID names a key in maps.
type keyID struct {
	db  int
	key string
}

// step is an effect of a record with its range of buf and its number of refs, 0 or 1.
type step struct {
	Effect
	from, to int
	refs     int
}

func (s *step) name() keyID { return keyID{s.DB, string(s.Key)} }

// next returns the effect at from. ref is the index of the first reference that may belong to it.
func (r *Record) next(from, ref int) step {
	e, n, rest, _ := effectHead(r.buf[from:]) // no error: the record is our own
	s := step{Effect: e, from: from, to: len(r.buf) - len(rest)}
	if ref < len(r.refs) && r.refs[ref].At == s.to {
		s.refs = 1
	} else {
		s.to += int(n)
	}
	return s
}

// each calls f with every effect in order.
func (r *Record) each(f func(i int, s *step)) {
	for i, at, ref := 0, 0, 0; at < len(r.buf); i++ {
		s := r.next(at, ref)
		at, ref = s.to, ref+s.refs
		f(i, &s)
	}
}

// voids says which effects of a record are void.
type voids struct {
	whole   map[keyID]int // index of the last effect that replaces or removes the whole key
	flushed map[int]int   // index of the last flush of a database
	patches map[keyID]int // number of bytes of a collection's patches that are not void
}

// of reports whether effect i is void.
func (w *voids) of(i int, s *step) bool {
	if i < w.flushed[s.DB] {
		return true
	}
	return !s.Flush && i < w.whole[s.name()]
}

// voids finds the void effects of the record.
func (r *Record) voids() *voids {
	w := &voids{map[keyID]int{}, map[int]int{}, map[keyID]int{}}
	r.each(func(i int, s *step) {
		switch {
		case s.Flush:
			w.flushed[s.DB] = i
		case !s.Patch:
			w.whole[s.name()] = i
			delete(w.patches, s.name())
		case s.Entry.Kind.IsCollection():
			w.patches[s.name()] += s.to - s.from
		}
	})
	return w
}

// Condense removes from the record all effects that later ones make void, and records a collection
// as a whole if that is smaller than its patches. weigh returns the number of bytes of a key that
// holds a collection, and for other keys more than any patches have; whole returns the collection.
func (r *Record) Condense(weigh func(db int, key string) int, whole func(db int, key string) entry.Entry) {
	w := r.voids()
	for key, n := range w.patches {
		if n <= leastCondensed/16 || n <= weigh(key.db, key.key) {
			delete(w.patches, key)
		}
	}
	r.leaveOut(w)
	for key := range w.patches {
		e := whole(key.db, key.key)
		r.Put(key.db, []byte(key.key), &e)
	}
	r.condensed.buf, r.condensed.long = len(r.buf), r.long
}

// leaveOut removes the void effects, and the patches of collections that are recorded as a whole.
// The other effects move down in the same memory.
func (r *Record) leaveOut(w *voids) {
	refs, kept, buf := r.refs, r.refs[:0], r.buf[:0]
	ref := 0
	r.each(func(i int, s *step) {
		void := w.of(i, s) || s.Patch && w.patches[s.name()] > 0
		if !void {
			buf = append(buf, r.buf[s.from:s.to]...)
		}
		for range s.refs {
			if void {
				r.long -= len(refs[ref].Bytes)
				refs[ref].Release()
			} else {
				moved := refs[ref]
				moved.At = len(buf)
				kept = append(kept, moved)
			}
			ref++
		}
	})
	clear(refs[len(kept):])
	r.refs, r.buf = kept, buf
}
