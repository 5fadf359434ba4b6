package lua

import (
	"cmp"
	"slices"

	"github.com/cellserver/cellserver/lua/value"
	"github.com/cellserver/cellserver/shared"
)

// lent has references to the long values of the store that the commands of one execution have
// replied without a copy. Strings of the script are slices of these values or of parts of them, so
// lent keeps the references until the execution is over. A string in the script's reply gets a
// reference of its own.
type lent struct {
	refs []shared.Ref
	// sorted says that refs are sorted by their addresses.
	sorted bool
	// bytes is the sum of the lengths of the values, where a value that was lent twice counts
	// twice. redisLibrary.begin resets it.
	bytes int64
}

// keptRefs is the maximum capacity of refs that is kept for the next execution.
const keptRefs = 64

// take moves refs into l, clears the slice refs, and returns the moved references. The result is
// valid until the next call of take or part.
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

// part returns another reference to the part s of a lent value. The second result is false if s is
// not in a lent value. part sorts l.refs, so the result of take becomes invalid.
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

func placeOfRef(r *shared.Ref) uintptr {
	from, _ := placeOf(value.View(r.Bytes))
	return from
}

// end releases all references, and drops the slice if it has become large.
func (l *lent) end() {
	shared.ReleaseAll(l.refs)
	if l.refs = l.refs[:0]; cap(l.refs) > keptRefs {
		l.refs = nil
	}
}
