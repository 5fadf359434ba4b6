package commands

import (
	"bytes"
	"slices"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/resp"
)

// sample is after how many elements the length of a reply is guessed.
const sample = 64

// readsBeside reports whether n elements are too many for the loop itself.
func (c *Ctx) readsBeside(n int) bool { return c.leaves(units(n, 0)) }

// besideRead runs read, which replies what the key at the first argument holds, beside
// the loops; none replies that it does not exist any more.
func (c *Ctx) besideRead(
	read func(st Store, db int, key []byte, w *resp.Writer) (found bool, err error), none func(w *resp.Writer),
) {
	db, key := c.S.selected(), bytes.Clone(c.Args[1])
	c.offload(true, func(st Store, w *resp.Writer) {
		mark := len(w.Buf)
		found, err := read(st, db, key, w)
		switch {
		case err != nil:
			w.Error(storeError(err))
		case !found:
			none(w)
		case w.Size(mark) > maxReply:
			w.Cut(mark)
			w.Error(errValuesTooLong)
		}
	})
}

// wholeReply writes one element after another, and stops when the reply is too long.
type wholeReply struct {
	w       *resp.Writer
	mark    int // where it begins
	n, done int // elements in all, and written
}

// wholeOf begins a reply of n elements.
func wholeOf(w *resp.Writer, n int) wholeReply { return wholeReply{w: w, mark: len(w.Buf), n: n} }

// more notes that an element has been written and reports whether to go on. Once some
// have been it makes room for all, since a buffer that grows by and by is copied, and
// faulted in, time and again while a shard is locked.
func (r *wholeReply) more() bool {
	r.done++
	if r.w.Pieces != nil && r.mark == 0 {
		r.w.Spill()
	} else if r.done == sample && r.n > 2*sample {
		size := (len(r.w.Buf) - r.mark) / sample * (r.n - sample)
		r.w.Buf = slices.Grow(r.w.Buf, min(size+size/8, maxReply))
	}
	return r.w.Size(r.mark) <= maxReply
}

// writeHash replies the fields of h, or its values, or both.
func writeHash(w *resp.Writer, h *collection.Hash, fields, values bool) {
	reply := wholeOf(w, h.Len())
	writeHashHead(w, h.Len(), fields && values)
	for field, value := range h.All() {
		if fields {
			w.Element(field)
		}
		if values {
			w.Element(value)
		}
		if !reply.more() {
			return
		}
	}
}

// writeHashHead begins the reply of n fields.
func writeHashHead(w *resp.Writer, n int, pairs bool) {
	if pairs {
		w.Map(n)
	} else {
		w.Array(n)
	}
}

// writeSet replies the members of s.
func writeSet(w *resp.Writer, s *collection.Set) {
	reply := wholeOf(w, s.Len())
	w.Set(s.Len())
	for m := range s.All() {
		w.Element(m)
		if !reply.more() {
			return
		}
	}
}

// writeList replies the values of l from an index to before another.
func writeList(w *resp.Writer, l *collection.List, from, to int) {
	reply := wholeOf(w, to-from)
	w.Array(to - from)
	for v := range l.Range(from, to) {
		w.Element(v)
		if !reply.more() {
			return
		}
	}
}
