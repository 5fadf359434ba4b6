package effect

import "github.com/cellserver/cellserver/entry"

// A script may change a key any number of times. What counts for whoever loads the log is
// what the last of these changes left, so a record that has become long is condensed:
// what a later effect of it makes void is left out. Then it takes about as much as the
// keys that were touched, however often that was.

// MaxRecord is how large a record may grow, without what later effects of it make void: it
// is kept whole or not at all, and who loads it has all of it in memory.
const MaxRecord = 64 << 20

// leastCondensed is from how many bytes on a record is condensed.
const leastCondensed = 4 << 20

// Due reports whether the record is to be condensed: each time that it has doubled, so
// that this costs a few times what recording does; sooner where what it refers to grows,
// which is in memory only for it and may be void; and before it is full.
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

// Worthwhile reports whether a record that is complete is to be condensed once more.
func (r *Record) Worthwhile() bool {
	last := r.condensed.buf + r.condensed.long
	return r.Size() >= leastCondensed && r.Size() > last+last/4
}

// keyID names a key in maps.
type keyID struct {
	db  int
	key string
}

// step is an effect of a record: the bytes of buf that it has, and how many of refs, 0 or 1.
type step struct {
	Effect
	from, to int
	refs     int
}

func (s *step) name() keyID { return keyID{s.DB, string(s.Key)} }

// next returns the effect at from, behind which lies the reference numbered ref if any.
func (r *Record) next(from, ref int) step {
	e, n, rest, _ := effectHead(r.buf[from:]) // which is our own
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

// voids is what makes effects of a record void.
type voids struct {
	whole   map[keyID]int // the last effect that leaves nothing of what a key was
	flushed map[int]int   // the last flush of a database
	patches map[keyID]int // how many bytes those patches of a collection have that are not void
}

// of reports whether effect i is void.
func (w *voids) of(i int, s *step) bool {
	if i < w.flushed[s.DB] {
		return true
	}
	return !s.Flush && i < w.whole[s.name()]
}

// voids finds them.
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

// Condense leaves out of the record whatever later effects of it make void, and records
// collections whole that have less in them than their patches: weigh says how many bytes
// a key takes if it holds a collection, and else more than any patches; whole returns it.
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

// leaveOut leaves out what is void, and the patches of collections that are recorded
// whole. What stays moves down in the memory that it has.
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
