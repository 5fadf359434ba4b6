package lua

import (
	"cmp"
	"slices"

	"github.com/cellserver/cellserver/lua/value"
	"github.com/cellserver/cellserver/shared"
)

// lent is what the commands of one execution have replied without a copy: long values of
// the store. A string of the script lies there, and so does each part of it. The references
// are kept until the execution is over, since nobody knows how long the script can reach
// the string; where it is a part of the script's reply, that takes a reference of its own.
type lent struct {
	refs []shared.Ref
	// sorted says that refs are in the order of their addresses.
	sorted bool
	// bytes is how long the values are together, each as often as it was lent. begin
	// resets it.
	bytes int64
}

// keptRefs is the capacity of refs that is kept from one execution to the next.
const keptRefs = 64

// take takes refs over, and returns where they are now until the next call.
func (l *lent) take(refs []shared.Ref) []shared.Ref {
	if len(refs) == 0 {
		return nil
	}
	n := len(l.refs)
	l.refs, l.sorted = append(l.refs, refs...), false
	clear(refs)
	for i := range l.refs[n:] {
		l.bytes += int64(len(l.refs[n+i].Bytes))
	}
	return l.refs[n:]
}

// part returns another reference to the value that s lies in. It sorts what take has
// returned.
func (l *lent) part(s string) (shared.Ref, bool) {
	if len(l.refs) == 0 {
		return shared.Ref{}, false
	}
	if !l.sorted {
		slices.SortFunc(l.refs, func(a, b shared.Ref) int { return cmp.Compare(placeOfRef(&a), placeOfRef(&b)) })
		l.sorted = true
	}
	at, _ := placeOf(s)
	i, found := slices.BinarySearchFunc(l.refs, at, func(r shared.Ref, at uintptr) int { return cmp.Compare(placeOfRef(&r), at) })
	if !found {
		i--
	}
	if i < 0 || at >= placeOfRef(&l.refs[i])+uintptr(len(l.refs[i].Bytes)) {
		return shared.Ref{}, false
	}
	return l.refs[i].Part(value.Bytes(s))
}

// placeOfRef returns where the bytes of r begin in memory.
func placeOfRef(r *shared.Ref) uintptr {
	from, _ := placeOf(value.View(r.Bytes))
	return from
}

// end releases all references.
func (l *lent) end() {
	shared.ReleaseAll(l.refs)
	if l.refs = l.refs[:0]; cap(l.refs) > keptRefs {
		l.refs = nil
	}
}
