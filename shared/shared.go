// Package shared lets a reply refer to a long stored value instead of copying it.
//
// A value of [Least] bytes or more is stored as a slice that [New] has made. Its bytes never change
// while a reply may refer to them. A reply takes a [Ref] while the value is locked ([Hold],
// [Held]), and releases the Ref once the reply has been sent. The keyspace may remove the value in
// between ([Drop]); then a [Ledger] counts the memory of the value until the last reference is
// released.
//
// Taking a reference costs an atomic operation and no allocation: the reference count is stored in
// front of the bytes.
package shared

import (
	"slices"
	"sync/atomic"
	"unsafe"
)

// Least is the minimum length in bytes of a value that replies refer to. A copy of that many bytes
// takes about a microsecond. A reference takes 64 bytes of memory and a further buffer in the call
// that sends. From this length on a reference costs less than a copy.
const Least = 16 << 10

// Ledger counts the memory of values that were removed from the keyspace and to which replies still
// refer. Any goroutine may call it.
type Ledger interface {
	// Count adds bytes, which may be negative, to the number of bytes that are counted.
	Count(bytes int64)
}

// head has the data about a value that [New] has made. It is stored in front of the bytes of the
// value.
type head struct {
	// state has the number of references, and the bit dropped once the value was removed from the
	// keyspace.
	state atomic.Uint32
	_     uint32
	size  int64 // size of the whole allocation in bytes
}

// headSize is the number of bytes of a head. It is a multiple of the alignment that Go gives to
// memory of this size.
const headSize = int(unsafe.Sizeof(head{}))

// dropped is the bit of head.state for a value that was removed from the keyspace.
const dropped = 1 << 31

// New returns a copy of v to which references can be taken. The copy has the capacity to grow by at
// least more bytes.
func New(v []byte, more int) []byte {
	if len(v)+more == 0 {
		more = 1 // a slice must have capacity; otherwise it would point behind its head
	}
	whole := make([]byte, headSize)
	if more > 0 {
		whole = slices.Grow(whole, len(v)+more)
	}
	whole = append(whole, v...) // append does not clear memory that it is about to overwrite
	headAt(unsafe.Pointer(unsafe.SliceData(whole))).size = int64(cap(whole))
	return whole[headSize:]
}

// NewString returns a copy of v as a string. References can be taken to its bytes, as to a value
// that [New] has made.
func NewString(v []byte) string {
	b := New(v, 0)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// Size returns the number of bytes of memory that v takes, including the head. New must have made
// v.
func Size(v []byte) int64 { return of(v).size }

func headAt(p unsafe.Pointer) *head { return (*head)(p) }

// of returns the head of v, which New must have made.
func of(v []byte) *head {
	return headAt(unsafe.Add(unsafe.Pointer(unsafe.SliceData(v)), -headSize))
}

// Busy reports whether a reply refers to v, which New must have made. No reference can be added
// while the caller holds the lock that guards v.
func Busy(v []byte) bool { return of(v).state.Load()&^dropped != 0 }

// Drop marks v, which New must have made, as removed from the keyspace. If replies refer to v, l
// counts its memory until the last reference is released. l may be nil if no reference to v was
// ever taken.
func Drop(v []byte, l Ledger) {
	h := of(v)
	if h.state.Or(dropped)&^dropped != 0 && l != nil {
		l.Count(h.size)
	}
}

// Hold adds a reference to v, which New must have made. [Held] returns the Ref for it. The caller
// holds the lock that guards v. If v was dropped and no other reference is left, Hold counts its
// memory in l.
func Hold(v []byte, l Ledger) {
	h := of(v)
	if h.state.Add(1) == dropped|1 && l != nil {
		l.Count(h.size)
	}
}

// Held returns the Ref for a reference that [Hold] has added, with the same v and l. Its Bytes are
// all of v.
func Held(v []byte, l Ledger) Ref { return Ref{Bytes: v, head: of(v), ledger: l} }

// Ref is a piece of a reply that is not in the buffer of the reply, but in a stored value or in
// memory of its own. The zero Ref is empty. [Ref.Release] must be called once the piece is no
// longer needed.
type Ref struct {
	// At is the offset in the buffer of the reply at which Bytes belong.
	At    int
	Bytes []byte

	head   *head
	ledger Ledger
	size   int64 // number of bytes that Release subtracts from ledger if head is nil
}

// Own returns a Ref to b, bytes that belong to one reply alone and never change. If l is not nil,
// the caller has counted size bytes in l, which [Ref.Release] subtracts.
func Own(b []byte, l Ledger, size int64) Ref { return Ref{Bytes: b, ledger: l, size: size} }

// Kept returns the number of bytes of memory that only this reply keeps and that no Ledger counts:
// the Ref itself, and Bytes if they are neither a stored value nor counted.
func (r *Ref) Kept() int {
	if r.head != nil || r.ledger != nil {
		return RefSize
	}
	return RefSize + len(r.Bytes)
}

// Counted reports whether the bytes belong to this reply alone and are counted in a Ledger.
func (r Ref) Counted() bool { return r.head == nil && r.ledger != nil }

// RefSize is the size of a Ref in bytes.
const RefSize = int(unsafe.Sizeof(Ref{}))

// Copied returns the number of bytes of memory that a value of n bytes adds to a reply: n for a
// copy, or [RefSize] for a reference.
func Copied(n int) int {
	if n >= Least {
		return RefSize
	}
	return n
}

// Release releases the reference. Bytes must not be used afterwards. A second call does nothing.
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

// Part adds a reference for b, a part of the Bytes of r, and returns the Ref for it. If r does not
// refer to a stored value, ok is false and no reference is added.
func (r *Ref) Part(b []byte) (part Ref, ok bool) {
	if r.head == nil {
		return Ref{}, false
	}
	r.head.state.Add(1)
	return Ref{Bytes: b, head: r.head, ledger: r.ledger}, true
}

// ReleaseAll calls [Ref.Release] for all refs.
func ReleaseAll(refs []Ref) {
	for i := range refs {
		refs[i].Release()
	}
}
