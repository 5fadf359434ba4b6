package lua

import (
	"cmp"
	"slices"

	"github.com/cellserver/cellserver/lua/value"
	"github.com/cellserver/cellserver/shared"
)

// lent has the long values of the store that the commands of one execution have replied without a
// copy. Strings of the script, and parts of them, are slices of these values. The references are
// kept until the execution is over, since the script may use the strings until then. A string in
// the script's reply gets a reference of its own.
type lent struct {
	refs []shared.Ref
	// sorted says that refs are sorted by their addresses.
	sorted bool
	// bytes is the sum of the values' lengths, each counted as often as it was lent. begin resets
	// it.
	bytes int64
}

// keptRefs is the capacity of refs that is kept for the next execution.
const keptRefs = 64

// take takes over refs, and returns them in memory that is valid until the next call.
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

// part returns another reference to the value of which s is a part. It sorts the result of take.
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

// placeOfRef returns the address of the bytes of r.
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
