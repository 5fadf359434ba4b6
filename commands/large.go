package commands

import (
	"bytes"
	"slices"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
)

// sample is after how many elements the length of a reply is guessed.
const sample = 64

// whole is the size of a reply that has n of the of elements of a collection, whose
// reply as a whole would copy so many bytes.
type whole struct{ n, of, copied int }

// bytes is about how many the reply will copy.
func (p whole) bytes() int {
	bytes := p.copied
	if p.n != p.of {
		bytes = int(float64(bytes) * float64(p.n) / float64(max(p.of, 1)))
	}
	return min(bytes+p.n*command.HeadBytes, command.MaxReply)
}

// readsBeside reports whether a reply is too large for the loop itself, and about how many
// bytes it copies.
func readsBeside(c *command.Call, p whole) (size int, beside bool) {
	size = p.bytes()
	return size, c.Leaves(command.Units(p.n, size))
}

// besideRead runs read, which replies about size bytes of what the key at the first
// argument holds, beside the loops; none replies that it does not exist any more.
func besideRead(c *command.Call,
	size int, read func(st command.Store, db int, key []byte, w *resp.Writer) (found bool, err error), none func(w *resp.Writer),
) {
	db, key := c.Client.Selected(), bytes.Clone(c.Args[1])
	c.OffloadSized(func(command.Store) int { return size }, func(st command.Store, w *resp.Writer) {
		mark := len(w.Buf)
		found, err := read(st, db, key, w)
		switch {
		case err != nil:
			w.Error(command.StoreError(err))
		case !found:
			none(w)
		case w.Size(mark) > command.Longest(w):
			w.Cut(mark)
			w.Error(command.TooLong(w))
		}
	})
}

// wholeReply writes one element after another, and stops when the reply is too long.
type wholeReply struct {
	w       *resp.Writer
	mark    int // where it begins
	n, done int // elements in all, and written
	most    int // bytes that it may copy
}

// wholeOf begins a reply of n elements.
func wholeOf(w *resp.Writer, n int) wholeReply {
	return wholeReply{w: w, mark: len(w.Buf), n: n, most: command.Longest(w)}
}

// pinner is a collection.
type pinner interface {
	// Pin is [collection.List.Pin].
	Pin() (unpin func())
}

// wholeFrom is wholeOf for n elements of a collection, of so many strings each. If w does
// that they are copied when its shard is not locked any more.
func wholeFrom(w *resp.Writer, n, strings int, of pinner) wholeReply {
	r := wholeOf(w, n)
	if w.Defers {
		if unpin := of.Pin(); unpin != nil {
			w.Defer(n*strings, unpin)
		}
	}
	return r
}

// mostHere is how many bytes a reply of the running command may copy where it runs.
func mostHere(c *command.Call) int {
	if c.Client.Exclusive || c.Client.Beside {
		return command.Longest(c.W)
	}
	return command.InlineReply
}

// more notes that an element has been written and reports whether to go on. Once some
// have been it makes room for all, since a buffer that grows by and by is copied, and
// faulted in, time and again while a shard is locked.
func (r *wholeReply) more() bool {
	r.done++
	if r.w.Pieces != nil {
		r.w.Spill(r.mark)
	} else if r.done == sample && r.n > 2*sample {
		size := (len(r.w.Buf) - r.mark) / sample * (r.n - sample)
		r.w.Buf = slices.Grow(r.w.Buf, min(size+size/8, r.most))
	}
	return r.w.Size(r.mark) <= r.most
}

// writeHash replies the fields of h, or its values, or both.
func writeHash(w *resp.Writer, h *collection.Hash, fields, values bool) {
	reply := wholeFrom(w, h.Len(), int(oneIf(fields)+oneIf(values)), h)
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
	reply := wholeFrom(w, s.Len(), 1, s)
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
	reply := wholeFrom(w, to-from, 1, l)
	w.Array(to - from)
	for v := range l.Range(from, to) {
		w.Element(v)
		if !reply.more() {
			return
		}
	}
}
