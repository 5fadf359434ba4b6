// Package shared lets a reply refer to a long value in the store instead of copying it.
//
// A value of [Least] bytes or more is stored as a slice that [New] has made. Its bytes never
// change while a reply may refer to them. A reply takes a [Ref] while the value is
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

// Ledger counts the memory of values that have left the store and that replies still refer to. Any
// goroutine may call it.
type Ledger interface {
	// Count adds to the bytes that are kept, or subtracts from them if the number is negative.
	Count(bytes int64)
}

// head is stored in front of the bytes of a value.
type head struct {
	// state is the number of references, and the bit dropped after the value was removed from the
	// store.
	state atomic.Uint32
	_     uint32
	size  int64 // of the whole allocation
}

// headSize is a multiple of the alignment that Go gives to memory of its size.
const headSize = int(unsafe.Sizeof(head{}))

// dropped is the bit for a value that is no longer in the store.
const dropped = 1 << 31

// New returns a copy of v with capacity for more bytes after it, to which a [Ref] can be taken.
func New(v []byte, more int) []byte {
	if len(v)+more == 0 {
		more = 1 // a slice without capacity does not point behind its head
	}
	whole := make([]byte, headSize)
	if more > 0 {
		whole = slices.Grow(whole, len(v)+more)
	}
	whole = append(whole, v...) // append does not clear memory that it is about to overwrite
	headAt(unsafe.Pointer(unsafe.SliceData(whole))).size = int64(cap(whole))
	return whole[headSize:]
}

// NewString is New for a string, without extra capacity.
func NewString(v []byte) string {
	b := New(v, 0)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// Size returns the memory of v in bytes. New must have made v.
func Size(v []byte) int64 { return of(v).size }

func headAt(p unsafe.Pointer) *head { return (*head)(p) }

// of returns the head of a value.
func of(v []byte) *head {
	return headAt(unsafe.Add(unsafe.Pointer(unsafe.SliceData(v)), -headSize))
}

// Busy reports whether a reply refers to v, which New must have made. No reference can be added
// while v is locked.
func Busy(v []byte) bool { return of(v).state.Load()&^dropped != 0 }

// Drop marks v, which New must have made, as removed from the store. l counts its memory until the last
// reference is released. l may be nil if no reference was ever taken.
func Drop(v []byte, l Ledger) {
	h := of(v)
	if h.state.Or(dropped)&^dropped != 0 && l != nil {
		l.Count(h.size)
	}
}

// Hold adds a reference to v, which New must have made. The caller holds the lock of v. [Held]
// returns the Ref.
func Hold(v []byte, l Ledger) {
	h := of(v)
	if h.state.Add(1) == dropped|1 && l != nil {
		l.Count(h.size)
	}
}

// Held returns the reference that Hold has added. Its Bytes are all of v.
func Held(v []byte, l Ledger) Ref { return Ref{Bytes: v, head: of(v), ledger: l} }

// Ref is a piece of a reply in other memory: in a value of the store, or in memory of its own. The
// zero Ref is empty.
type Ref struct {
	// At is the offset of Bytes in the rest of the reply: the number of bytes sent before it.
	At    int
	Bytes []byte

	head   *head
	ledger Ledger
	size   int64 // subtracted from ledger if there is no head
}

// Own returns a Ref to bytes that belong to this reply alone and never change. If l is not nil, it has
// counted size for them, which Release subtracts.
func Own(b []byte, l Ledger, size int64) Ref { return Ref{Bytes: b, ledger: l, size: size} }

// Kept returns the bytes of memory that belong to this reply alone and that no Ledger counts.
func (r *Ref) Kept() int {
	if r.head != nil || r.ledger != nil {
		return RefSize
	}
	return RefSize + len(r.Bytes)
}

// Counted reports whether the bytes are kept for this reply alone, and counted.
func (r Ref) Counted() bool { return r.head == nil && r.ledger != nil }

// RefSize is the size of a Ref in bytes.
const RefSize = int(unsafe.Sizeof(Ref{}))

// Copied returns the bytes that a value of n bytes adds to a reply: the copy, or the reference to it.
func Copied(n int) int {
	if n >= Least {
		return RefSize
	}
	return n
}

// Release drops the reference. The caller must not use the bytes afterwards. A second call does nothing.
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

// Part adds a reference for b, a part of the Bytes of r. ok is false, and no reference is added, if r
// does not refer to a value of the store.
func (r *Ref) Part(b []byte) (part Ref, ok bool) {
	if r.head == nil {
		return Ref{}, false
	}
	r.head.state.Add(1)
	return Ref{Bytes: b, head: r.head, ledger: r.ledger}, true
}

// ReleaseAll releases all refs.
func ReleaseAll(refs []Ref) {
	for i := range refs {
		refs[i].Release()
	}
}
