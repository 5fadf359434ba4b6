package elements

import (
	"bytes"
	"iter"
	"slices"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
)

// sample is the number of elements from which the length of the whole reply is estimated.
const sample = 64

// Whole describes the size of a reply with N of the elements of a collection. Of is the number of
// all elements, and Copied the number of bytes that a reply with all of them would copy.
type Whole struct{ N, Of, Copied int }

// bytes returns the approximate number of bytes that the reply copies, at most [command.MaxReply].
func (p Whole) bytes() int {
	bytes := p.Copied
	if p.N != p.Of {
		bytes = int(float64(bytes) * float64(p.N) / float64(max(p.Of, 1)))
	}
	return min(bytes+p.N*command.HeadBytes, command.MaxReply)
}

// ReadsBeside reports in beside whether the reply p is too large to be built on the event loop.
// size is the approximate number of bytes that the reply copies. If the reply is not too large, its
// work is added to the work of the batch.
func ReadsBeside(c *command.Call, p Whole) (size int, beside bool) {
	size = p.bytes()
	return size, c.ExceedsLoop(command.Units(p.N, size))
}

// BesideRead runs read in the background. read replies with about size bytes from key, which is the
// command's first argument, in the selected database. If the key no longer exists, the function
// none writes the reply. A reply that is too long is replaced by an error.
func BesideRead[S any](c command.CallOn[S],
	size int, read func(st S, db int, key []byte, w *resp.Writer) (found bool, err error), none func(w *resp.Writer),
) {
	db, key := c.Client.Selected(), bytes.Clone(c.Args[1])
	c.OffloadSized(func(S) int { return size }, func(st S, w *resp.Writer) {
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

// WholeReply is a reply whose elements the caller writes. Its method More says when the reply gets
// too long.
type WholeReply struct {
	W       *resp.Writer
	Mark    int // the offset in W.Buf at which the reply begins
	N, Done int // the number of all elements, and of those that are written
	Most    int // the maximum number of bytes that the reply may copy
}

// WholeOf begins a reply of n elements to w. The reply may copy at most [command.Longest] bytes.
func WholeOf(w *resp.Writer, n int) WholeReply {
	return WholeReply{W: w, Mark: len(w.Buf), N: n, Most: command.Longest(w)}
}

// pinner is a collection whose elements can be pinned: they stay valid and unchanged until unpin is
// called.
type pinner interface {
	// Pin does what [collection.List.Pin] does, for a collection of any type. unpin is nil if the
	// collection is too small to be pinned.
	Pin() (unpin func())
}

// WholeFrom is WholeOf for n elements of the collection of. The reply has as many strings of the
// collection for each element as strings says. If w supports it, the elements are pinned and are
// copied only after their shard was unlocked.
func WholeFrom(w *resp.Writer, n, strings int, of pinner) WholeReply {
	r := WholeOf(w, n)
	if w.Defers {
		if unpin := of.Pin(); unpin != nil {
			w.Defer(n*strings, unpin)
		}
	}
	return r
}

// MostHere returns the number of bytes that a reply of the running command may copy on the
// goroutine on which the command runs. A longer reply has to be built in the background.
func MostHere(c *command.Call) int {
	if c.Client.Exclusive || c.Client.Background {
		return command.Longest(c.W)
	}
	return command.InlineReply
}

// More counts an element that the caller has written, and returns false if the reply has become too
// long. After the first elements it grows the buffer for all of them, because a buffer that grows
// step by step is copied, and causes page faults, repeatedly while a shard is locked.
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

// WriteHash replies with the fields of h, with its values, or with both. It stops early if the
// reply gets too long; the caller then has to replace it.
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

// WriteHashHead begins a reply with n fields or values or, if pairs is set, with n pairs of both.
func WriteHashHead(w *resp.Writer, n int, pairs bool) {
	if pairs {
		w.Map(n)
	} else {
		w.Array(n)
	}
}

// WriteSet replies with the members of s. It stops early if the reply gets too long; the caller
// then has to replace it.
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

// WriteList replies with the values of l from index from up to, but not including, index to. It
// stops early if the reply gets too long; the caller then has to replace it.
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

// CopiedOf returns the number of bytes that a reply with elements copies to w. If w may refer to
// long elements, they are not copied.
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
