package commands

import (
	"iter"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/elements"
	"github.com/cellserver/cellserver/commands/parse"
	"github.com/cellserver/cellserver/commands/sortedsets"
	"github.com/cellserver/cellserver/resp"
)

// popCall is what a command that takes elements from the first of several keys wants:
// BLPOP, LMPOP, BZPOPMIN, BLMOVE and their kin. front is the left end of a list, and the
// lowest scores of a sorted set.
type popCall struct {
	sorted, front bool
	count         int // how many elements, for a reply with an array of them; 0 for one
	// move and to are those of a command that moves an element of a list; to is nil for
	// all others.
	move listMove
	to   []byte
}

// take takes what there is under a key, which is held, and replies it. If there is nothing
// it has replied nothing.
func (call *popCall) take(st command.Store, db int, key []byte, w *resp.Writer) (found bool, err error) {
	mark := len(w.Buf)
	switch {
	case call.to != nil:
		var value []byte
		if value, found, err = call.move.move(st, db, key, call.to); found && err == nil {
			w.Bulk(value)
		}
	case call.sorted:
		err = st.WriteSortedSet(db, key, func(z *collection.SortedSet) error {
			found = z.Len() > 0
			return call.takeScored(z, key, w)
		})
	default:
		err = st.WriteList(db, key, func(l *collection.List) error {
			found = l.Len() > 0
			return call.takeListed(l, key, w)
		})
	}
	if err != nil {
		w.Cut(mark)
	}
	return found, err
}

// span returns which elements of a collection of that length the call takes.
func (call *popCall) span(length int) (from, to int) {
	n := min(max(call.count, 1), length)
	if call.front {
		return 0, n
	}
	return length - n, length
}

func (call *popCall) takeListed(l *collection.List, key []byte, w *resp.Writer) error {
	if l.Len() == 0 {
		return nil
	}
	from, to := call.span(l.Len())
	if elements.CopiedOf(w, l.Range(from, to)) > command.Longest(w) {
		return command.ErrLongReply
	}
	w.Array(2)
	w.Bulk(key)
	if call.count > 0 {
		w.Array(to - from)
	}
	for range to - from {
		v, _ := popOne(l, call.front)
		w.Element(v)
	}
	return nil
}

func (call *popCall) takeScored(z *collection.SortedSet, key []byte, w *resp.Writer) error {
	if z.Len() == 0 {
		return nil
	}
	from, to := call.span(z.Len())
	if call.count == 0 {
		member, score, _ := z.At(from)
		w.Array(3)
		w.Bulk(key)
		w.Element(member)
		elements.WriteScore(w, score)
	} else {
		w.Array(2)
		w.Bulk(key)
		if !sortedsets.WriteElements(w, z, from, to, sortedsets.RangeReply{Down: !call.front, Scores: true, Nested: true}) {
			return command.ErrLongReply
		}
	}
	z.RemoveRange(from, to)
	return nil
}

const (
	// popKeyWork is the work of each key of a pop, which is held, looked at and, if there
	// is nothing, waited for.
	popKeyWork = 8
	// fewPopped is of how many elements a pop is too short to be measured.
	fewPopped = 64
)

// popWork is how much it is to take from the first of keys that has something.
func popWork(c *command.Call, call *popCall, keys [][]byte) int {
	work := len(keys) * popKeyWork
	if work > command.LoopWork || call.count <= fewPopped {
		return work + call.count
	}
	n, copied := 0, 0
	look := func(length int, seq func(from, to int) iter.Seq[[]byte]) {
		from, to := call.span(length)
		if n = to - from; n <= command.LoopWork {
			copied = elements.CopiedOf(c.W, seq(from, to))
		}
	}
	for _, key := range keys {
		var found bool
		var err error
		if call.sorted {
			found, err = c.Store.ReadSortedSet(c.Client.Selected(), key, func(z *collection.SortedSet) {
				look(z.Len(), func(from, to int) iter.Seq[[]byte] { return sortedsets.MembersOf(z, from, to) })
			})
		} else {
			found, err = c.Store.ReadList(c.Client.Selected(), key, func(l *collection.List) { look(l.Len(), l.Range) })
		}
		if found || err != nil {
			break
		}
	}
	return work + command.Units(n, copied)
}

// popNow takes from the first of keys that has something, and reports whether there was
// one or an error: then it has replied. The keys are held.
func popNow(c *command.Call, call *popCall, keys [][]byte) bool {
	for _, key := range keys {
		found, err := call.take(c.Store, c.Client.Selected(), key, c.W)
		switch {
		case err != nil:
			c.Fail(elements.ElementsError(c, err))
			return true
		case found:
			return true
		}
	}
	return false
}

const (
	errMpopKeys  resp.Error = "ERR numkeys should be greater than 0"
	errMpopCount resp.Error = "ERR count should be greater than 0"
)

// parseMpop reads `numkeys key [key ...] <front | back> [COUNT count]`.
func parseMpop(args [][]byte, front, back string) (call popCall, keys [][]byte, err resp.Error) {
	n, ok := parse.Int(args[0])
	if !ok || n < 1 {
		return call, nil, errMpopKeys
	}
	if n >= int64(len(args)-1) {
		return call, nil, resp.ErrSyntax
	}
	keys, args = args[1:1+n], args[1+n:]
	call.count, call.front = 1, parse.IsWord(args[0], front)
	if !call.front && !parse.IsWord(args[0], back) {
		return call, nil, resp.ErrSyntax
	}
	switch {
	case len(args) == 1:
		return call, keys, ""
	case len(args) != 3 || !parse.IsWord(args[1], "COUNT"):
		return call, nil, mpopFault(args[1:])
	}
	count, fault := parseMpopCount(args[2])
	call.count = count
	return call, keys, fault
}

// mpopFault is what Redis says of options, which it reads one after another.
func mpopFault(args [][]byte) resp.Error {
	if len(args) > 2 && parse.IsWord(args[0], "COUNT") {
		if _, err := parseMpopCount(args[1]); err != "" {
			return err
		}
	}
	return resp.ErrSyntax
}

func parseMpopCount(b []byte) (int, resp.Error) {
	n, ok := parse.Int(b)
	if !ok || n < 1 {
		return 0, errMpopCount
	}
	return int(min(n, maxPopped)), ""
}

// maxPopped is beyond the number of elements that a collection can have.
const maxPopped = 1 << 40

// numkeysAt is the KeySpec of a command with the number of its keys as argument i.
func numkeysAt(i int) command.KeySpec {
	return command.KeySpec{Find: func(args [][]byte) ([]int, bool) {
		if len(args) <= i {
			return nil, false
		}
		n, ok := parse.Int(args[i])
		if !ok || n < 1 || n > int64(len(args)-1-i) {
			return nil, false
		}
		at := make([]int, n)
		for k := range at {
			at[k] = i + 1 + k
		}
		return at, true
	}}
}

// mpop is the handler of LMPOP and ZMPOP.
func mpop(sorted bool, front, back string) func(*command.Call) {
	return func(c *command.Call) {
		call, keys, err := parseMpop(c.Args[1:], front, back)
		if err != "" {
			c.Fail(err)
			return
		}
		call.sorted = sorted
		if c.Left(c.Stay(popWork(c, &call, keys))) {
			return
		}
		done := false
		withKeys(c, keys, nil, func() { done = popNow(c, &call, keys) })
		if !done {
			c.W.NullArray()
		}
	}
}
