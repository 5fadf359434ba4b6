package blocking

import (
	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/elements"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/resp"
)

// Call is the request of a command that pops elements from the first of several keys that has
// any: BLPOP, LMPOP, BZPOPMIN, BLMOVE and similar commands. Front is the left end of a list, or
// the lowest scores of a sorted set.
type Call struct {
	Kind  *Kind
	Front bool
	Count int // the number of elements, for a reply with an array of them; 0 for one element without an array
	// ToFront and To are for commands that move an element of a list to another list. To is nil
	// for all others.
	ToFront bool
	To      []byte
}

// Kind has the functions that pop elements of one type of key.
type Kind struct {
	SortedSet bool
	// Take pops elements from a key, which is locked, and writes the reply. If there are none it
	// writes nothing.
	Take func(call *Call, st env.Store, db int, key []byte, w *resp.Writer) (found bool, err error)
	// Weigh returns how many elements Take would pop and how many bytes it would copy. found
	// reports that the call would look at no further key, which is also so after an error.
	Weigh func(call *Call, c *command.Call, key []byte) (elements, copied int, found bool)
}

// Span returns the range of the elements that the call pops from a collection of the given
// length.
func (call *Call) Span(length int) (from, to int) {
	n := min(max(call.Count, 1), length)
	if call.Front {
		return 0, n
	}
	return length - n, length
}

const (
	// popKeyWork is the work for each key of a pop, which has to be locked, read and possibly
	// waited for.
	popKeyWork = 8
	// fewPopped is the number of elements up to which the work of a pop is not measured.
	fewPopped = 64
)

// popWork returns the work of popping from the first of keys that has elements.
func popWork(c *command.Call, call *Call, keys [][]byte) int {
	work := len(keys) * popKeyWork
	if work > command.MaxLoopWork || call.Count <= fewPopped {
		return work + call.Count
	}
	for _, key := range keys {
		if n, copied, found := call.Kind.Weigh(call, c, key); found {
			return work + command.Units(n, copied)
		}
	}
	return work
}

// popNow pops from the first of keys that has elements. It reports whether it has replied, with
// elements or an error. The keys are locked.
func popNow(c *command.Call, call *Call, keys [][]byte) bool {
	for _, key := range keys {
		found, err := call.Kind.Take(call, c.Store, c.Client.Selected(), key, c.W)
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

// parseMpop parses `numkeys key [key ...] <front | back> [COUNT count]`.
func parseMpop(args [][]byte, front, back string) (call Call, keys [][]byte, err resp.Error) {
	n, ok := arg.Int(args[0])
	if !ok || n < 1 {
		return call, nil, errMpopKeys
	}
	if n >= int64(len(args)-1) {
		return call, nil, resp.ErrSyntax
	}
	keys, args = args[1:1+n], args[1+n:]
	call.Count, call.Front = 1, arg.IsWord(args[0], front)
	if !call.Front && !arg.IsWord(args[0], back) {
		return call, nil, resp.ErrSyntax
	}
	switch {
	case len(args) == 1:
		return call, keys, ""
	case len(args) != 3 || !arg.IsWord(args[1], "COUNT"):
		return call, nil, mpopFault(args[1:])
	}
	count, fault := parseMpopCount(args[2])
	call.Count = count
	return call, keys, fault
}

// mpopFault returns the error that Redis replies with for these options, which it checks one by
// one.
func mpopFault(args [][]byte) resp.Error {
	if len(args) > 2 && arg.IsWord(args[0], "COUNT") {
		if _, err := parseMpopCount(args[1]); err != "" {
			return err
		}
	}
	return resp.ErrSyntax
}

func parseMpopCount(b []byte) (int, resp.Error) {
	n, ok := arg.Int(b)
	if !ok || n < 1 {
		return 0, errMpopCount
	}
	return int(min(n, maxPopped)), ""
}

// maxPopped exceeds the number of elements that a collection can have.
const maxPopped = 1 << 40

// NumkeysAt returns the KeySpec of a command whose argument i is the number of its keys.
func NumkeysAt(i int) command.KeySpec { return command.KeySpec{Count: i} }
