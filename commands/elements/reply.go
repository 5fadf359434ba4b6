package elements

import (
	"bytes"
	"iter"
	"slices"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/resp"
)

// sample is the number of elements from whose length the length of the whole reply is estimated.
const sample = 64

// Whole is the size of a reply with N of the Of elements of a collection. A reply with all
// elements would copy Copied bytes.
type Whole struct{ N, Of, Copied int }

// bytes returns the approximate number of bytes that the reply copies.
func (p Whole) bytes() int {
	bytes := p.Copied
	if p.N != p.Of {
		bytes = int(float64(bytes) * float64(p.N) / float64(max(p.Of, 1)))
	}
	return min(bytes+p.N*command.HeadBytes, command.MaxReply)
}

// ReadsBeside reports whether a reply is too large to be built on the loop, and about how many
// bytes it copies.
func ReadsBeside(c *command.Call, p Whole) (size int, beside bool) {
	size = p.bytes()
	return size, c.ExceedsLoop(command.Units(p.N, size))
}

// BesideRead runs read in the background. read replies with about size bytes from the key in the
// first argument. If the key no longer exists, none writes the reply.
func BesideRead(c *command.Call,
	size int, read func(st env.Store, db int, key []byte, w *resp.Writer) (found bool, err error), none func(w *resp.Writer),
) {
	db, key := c.Client.Selected(), bytes.Clone(c.Args[1])
	c.OffloadSized(func(env.Store) int { return size }, func(st env.Store, w *resp.Writer) {
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

// WholeReply writes the elements of a reply, and stops when the reply is too long.
type WholeReply struct {
	W       *resp.Writer
	Mark    int // the offset in W.Buf at which it begins
	N, Done int // the number of elements in all, and of those written
	Most    int // the largest number of bytes that it may copy
}

// WholeOf begins a reply of n elements.
func WholeOf(w *resp.Writer, n int) WholeReply {
	return WholeReply{W: w, Mark: len(w.Buf), N: n, Most: command.Longest(w)}
}

// pinner is a collection whose elements can be pinned.
type pinner interface {
	// Pin is [collection.List.Pin].
	Pin() (unpin func())
}

// WholeFrom is WholeOf for n elements of a collection with the given number of strings each. If w
// supports pinning, they are copied only after their shard is unlocked.
func WholeFrom(w *resp.Writer, n, strings int, of pinner) WholeReply {
	r := WholeOf(w, n)
	if w.Defers {
		if unpin := of.Pin(); unpin != nil {
			w.Defer(n*strings, unpin)
		}
	}
	return r
}

// MostHere returns how many bytes a reply of the running command may copy on the goroutine that
// it runs on.
func MostHere(c *command.Call) int {
	if c.Client.Exclusive || c.Client.Background {
		return command.Longest(c.W)
	}
	return command.InlineReply
}

// More counts a written element and reports whether to continue. After the first elements it
// grows the buffer for all of them, because a buffer that grows step by step is copied, and
// causes page faults, repeatedly while a shard is locked.
func (r *WholeReply) More() bool {
	r.Done++
	if r.W.Pieces != nil {
		r.W.Spill(r.Mark)
	} else if r.Done == sample && r.N > 2*sample {
		size := (len(r.W.Buf) - r.Mark) / sample * (r.N - sample)
		r.W.Buf = slices.Grow(r.W.Buf, min(size+size/8, r.Most))
	}
	return r.W.Size(r.Mark) <= r.Most
}

// WriteHash replies with the fields of h, with its values, or with both.
func WriteHash(w *resp.Writer, h *collection.Hash, fields, values bool) {
	reply := WholeFrom(w, h.Len(), int(OneIf(fields)+OneIf(values)), h)
	WriteHashHead(w, h.Len(), fields && values)
	for field, value := range h.All() {
		if fields {
			w.Element(field)
		}
		if values {
			w.Element(value)
		}
		if !reply.More() {
			return
		}
	}
}

// WriteHashHead begins the reply of n fields.
func WriteHashHead(w *resp.Writer, n int, pairs bool) {
	if pairs {
		w.Map(n)
	} else {
		w.Array(n)
	}
}

// WriteSet replies with the members of s.
func WriteSet(w *resp.Writer, s *collection.Set) {
	reply := WholeFrom(w, s.Len(), 1, s)
	w.Set(s.Len())
	for m := range s.All() {
		w.Element(m)
		if !reply.More() {
			return
		}
	}
}

// WriteList replies with the values of l from index from up to, but not including, index to.
func WriteList(w *resp.Writer, l *collection.List, from, to int) {
	reply := WholeFrom(w, to-from, 1, l)
	w.Array(to - from)
	for v := range l.Range(from, to) {
		w.Element(v)
		if !reply.More() {
			return
		}
	}
}

// CopiedOf returns the number of bytes that a reply of elements copies. A writer that may refer
// to long elements does not copy these.
func CopiedOf(w *resp.Writer, elements iter.Seq[[]byte]) (n int) {
	for e := range elements {
		if w.Ledger == nil {
			n += len(e) + command.HeadBytes
		} else {
			n += command.CopiedBytes(len(e))
		}
	}
	return n
}
