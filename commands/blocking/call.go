package blocking

import (
	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/elements"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/resp"
)

// Call is what a command that takes elements from the first of several keys wants:
// BLPOP, LMPOP, BZPOPMIN, BLMOVE and their kin. Front is the left end of a list, and the
// lowest scores of a sorted set.
type Call struct {
	Kind  *Kind
	Front bool
	Count int // how many elements, for a reply with an array of them; 0 for one
	// ToFront and To are those of a command that moves an element of a list; To is nil for
	// all others.
	ToFront bool
	To      []byte
}

// Kind is how elements are taken from keys of one type.
type Kind struct {
	SortedSet bool
	// Take takes what there is under a key, which is locked, and replies it. If there is
	// nothing it has replied nothing.
	Take func(call *Call, st env.Store, db int, key []byte, w *resp.Writer) (found bool, err error)
	// Weigh is how many elements Take would take, and how many bytes of them it would copy.
	// found says that it would look at no other key, be it because of an error.
	Weigh func(call *Call, c *command.Call, key []byte) (elements, copied int, found bool)
}

// Span returns which elements of a collection of that length the call takes.
func (call *Call) Span(length int) (from, to int) {
	n := min(max(call.Count, 1), length)
	if call.Front {
		return 0, n
	}
	return length - n, length
}

const (
	// popKeyWork is the work of each key of a pop, which is locked, looked at and, if there
	// is nothing, waited for.
	popKeyWork = 8
	// fewPopped is of how many elements a pop is too short to be measured.
	fewPopped = 64
)

// popWork is how much it is to take from the first of keys that has something.
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

// popNow takes from the first of keys that has something, and reports whether there was
// one or an error: then it has replied. The keys are locked.
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

// parseMpop reads `numkeys key [key ...] <front | back> [COUNT count]`.
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

// mpopFault is what Redis says of options, which it reads one after another.
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

// maxPopped is beyond the number of elements that a collection can have.
const maxPopped = 1 << 40

// NumkeysAt is the KeySpec of a command with the number of its keys as argument i.
func NumkeysAt(i int) command.KeySpec { return command.KeySpec{Count: i} }
