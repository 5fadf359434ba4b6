// Package shared lets a reply refer to a long value in the store instead of copying it.
//
// A value of [Least] bytes or more is stored as a slice that [New] has made. Its bytes never
// change while somebody else may refer to them. A reply takes a [Ref] while the value is
// locked, and releases it once it has been sent. The store may remove the value meanwhile
// ([Drop]); a [Ledger] counts its memory until the last reference is released.
//
// The package has no keys and no sockets. A reference costs an atomic operation and no memory:
// the reference count is stored in front of the bytes.
package shared

import (
	"slices"
	"sync/atomic"
	"unsafe"
)

// Least is the shortest value that replies refer to. Copying that much takes about a
// microsecond; a reference, which costs a second buffer in the call that sends, and 64
// bytes of memory, begins to pay there.
const Least = 16 << 10

// Ledger is told of memory that is kept only because somebody refers to it. It may be
// called from any goroutine.
type Ledger interface {
	// Count adds to the bytes that are kept, or takes off if the number is negative.
	Count(bytes int64)
}

// head lies in front of the bytes of a value.
type head struct {
	// state is the number of references, and dropped once the value is not in the store.
	state atomic.Uint32
	_     uint32
	size  int64 // of the whole memory
}

// headSize is a multiple of the alignment that Go gives to memory of its size.
const headSize = int(unsafe.Sizeof(head{}))

// dropped is the bit of a value that is not in the store any more.
const dropped = 1 << 31

// New returns a copy of v with room for more bytes behind it, to which a [Ref] can be
// taken.
func New(v []byte, more int) []byte {
	if len(v)+more == 0 {
		more = 1 // a slice without capacity does not point behind its head
	}
	whole := make([]byte, headSize)
	if more > 0 {
		whole = slices.Grow(whole, len(v)+more)
	}
	whole = append(whole, v...) // which clears no memory that it is about to fill
	headAt(unsafe.Pointer(unsafe.SliceData(whole))).size = int64(cap(whole))
	return whole[headSize:]
}

// NewString is New for a string: it has no room.
func NewString(v []byte) string {
	b := New(v, 0)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// Size is how much memory v takes, which New has made.
func Size(v []byte) int64 { return of(v).size }

func headAt(p unsafe.Pointer) *head { return (*head)(p) }

// of returns the head of a value.
func of(v []byte) *head {
	return headAt(unsafe.Add(unsafe.Pointer(unsafe.SliceData(v)), -headSize))
}

// Busy reports whether somebody refers to v, which New has made. While v is locked
// nobody can begin to.
func Busy(v []byte) bool { return of(v).state.Load()&^dropped != 0 }

// Drop says that v, which New has made, is not in the store any more. While somebody
// refers to it l counts its memory. l may be nil where nobody ever could.
func Drop(v []byte, l Ledger) {
	h := of(v)
	if h.state.Or(dropped)&^dropped != 0 && l != nil {
		l.Count(h.size)
	}
}

// Hold takes a reference to v, which New has made and which is locked. [Held] makes a
// Ref of it.
func Hold(v []byte, l Ledger) {
	h := of(v)
	if h.state.Add(1) == dropped|1 && l != nil {
		l.Count(h.size)
	}
}

// Held returns the reference that Hold has taken. It sends all of v.
func Held(v []byte, l Ledger) Ref { return Ref{Bytes: v, head: of(v), ledger: l} }

// Ref is a piece of a reply that lies elsewhere: in a value of the store, or in memory
// of its own. The zero Ref is empty.
type Ref struct {
	// At is where Bytes comes in the bytes of the reply that are not elsewhere: behind
	// so many of them.
	At    int
	Bytes []byte

	head   *head
	ledger Ledger
	size   int64 // given back to ledger where there is no head
}

// Own returns a Ref to bytes that nobody else changes and that are kept for this reply
// alone. l, if it is not nil, has counted size for them, which Release gives back.
func Own(b []byte, l Ledger, size int64) Ref { return Ref{Bytes: b, ledger: l, size: size} }

// Kept returns how many bytes of memory are kept for this reply alone and counted by
// nobody else.
func (r *Ref) Kept() int {
	if r.head != nil || r.ledger != nil {
		return RefSize
	}
	return RefSize + len(r.Bytes)
}

// Counted reports whether the bytes are kept for this reply alone, and counted.
func (r Ref) Counted() bool { return r.head == nil && r.ledger != nil }

// RefSize is what a Ref itself takes.
const RefSize = int(unsafe.Sizeof(Ref{}))

// Copied is how many bytes a reply takes for a value of n: those that it copies, or those
// of its reference.
func Copied(n int) int {
	if n >= Least {
		return RefSize
	}
	return n
}

// Release gives the reference up; the bytes must not be used any more. A second call
// does nothing.
func (r *Ref) Release() {
	h, l := r.head, r.ledger
	r.Bytes, r.head, r.ledger = nil, nil, nil
	switch {
	case h != nil:
		if h.state.Add(^uint32(0)) == dropped && l != nil {
			l.Count(-h.size)
		}
	case l != nil:
		l.Count(-r.size)
	}
}

// Part takes one more reference, for b: a part of the Bytes of r, which was taken of a
// value of the store. ok is false where it was not, and nothing is taken.
func (r *Ref) Part(b []byte) (part Ref, ok bool) {
	if r.head == nil {
		return Ref{}, false
	}
	r.head.state.Add(1)
	return Ref{Bytes: b, head: r.head, ledger: r.ledger}, true
}

// ReleaseAll releases every one of refs.
func ReleaseAll(refs []Ref) {
	for i := range refs {
		refs[i].Release()
	}
}
