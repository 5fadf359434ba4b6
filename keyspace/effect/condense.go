package effect

import "github.com/cellserver/cellserver/entry"

// A script may change a key any number of times, but only the state after the last change matters
// when the log is loaded. So a record that has become long is condensed: the effects that later
// effects make void are removed. Afterwards the record is about as large as the changed keys,
// however often they were changed.

// MaxRecord is the size in bytes at which a condensed record accepts no further effects. The size
// has a bound because a record is kept as a whole or not at all, and loading needs all of it in
// memory.
const MaxRecord = 64 << 20

// leastCondensed is the minimum size in bytes of a record that is condensed.
const leastCondensed = 4 << 20

// Due reports whether the record should be condensed now. There are three cases. First, the bytes
// of the record have doubled since it was last condensed; because of this rule condensing costs at
// most a few times as much as recording. Second, the long values to which the record refers have
// grown by at least four times its bytes; some of these values may be void, and only the record
// keeps void values in memory. Third, the record has reached [MaxRecord] and has grown by an eighth
// since it was last condensed. A record of less than 4 MiB is not due.
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

// Worthwhile reports whether a record that is complete should be condensed once more: it has at
// least 4 MiB, and has grown by more than a quarter since it was last condensed.
func (r *Record) Worthwhile() bool {
	last := r.condensed.buf + r.condensed.long
	return r.Size() >= leastCondensed && r.Size() > last+last/4
}

// keyID identifies a key by its database and its name.
type keyID struct {
	db  int
	key string
}

// step is an effect of a record: its bytes are buf[from:to], and refs, 0 or 1, is the number of its
// references.
type step struct {
	Effect
	from, to int
	refs     int
}

func (s *step) name() keyID { return keyID{s.DB, string(s.Key)} }

// next returns the effect that begins at buf[from]. ref is the index of the first reference that
// may belong to the effect.
func (r *Record) next(from, ref int) step {
	e, n, rest, _ := effectHead(r.buf[from:]) // an error is impossible, because this server has written the record
	s := step{Effect: e, from: from, to: len(r.buf) - len(rest)}
	if ref < len(r.refs) && r.refs[ref].At == s.to {
		s.refs = 1
	} else {
		s.to += int(n)
	}
	return s
}

// each calls f with every effect of the record in order. i is the number of the effect, from 0.
func (r *Record) each(f func(i int, s *step)) {
	for i, at, ref := 0, 0, 0; at < len(r.buf); i++ {
		s := r.next(at, ref)
		at, ref = s.to, ref+s.refs
		f(i, &s)
	}
}

// voids describes which effects of a record later effects make void.
type voids struct {
	whole   map[keyID]int // index of the last effect that replaces or removes the whole key
	flushed map[int]int   // index of the last effect that flushes a database
	patches map[keyID]int // bytes of those patches of a collection that are not void
}

// of reports whether s, the i-th effect of the record, is void.
func (w *voids) of(i int, s *step) bool {
	if i < w.flushed[s.DB] {
		return true
	}
	return !s.Flush && i < w.whole[s.name()]
}

// voids examines the record and returns which of its effects are void.
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

// Condense removes from the record all effects that later effects make void. It also replaces the
// patches of a collection by the whole collection, if that is smaller and the patches have more
// than 256 KiB. weigh returns the number of bytes of the key's value if that is a collection,
// otherwise [math.MaxInt]. whole returns the present entry of the key.
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

// leaveOut removes the void effects, and the patches of the collections in w.patches, which are
// recorded as a whole. It releases the references of the removed effects. The other effects move
// down in the same memory.
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
