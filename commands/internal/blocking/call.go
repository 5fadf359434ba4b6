package blocking

import (
	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands/internal/elements"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/resp"
)

// Store is the part of the store that commands which may wait for elements use.
type Store interface {
	env.Store
	env.Locker
	env.Keys
	env.Lists
	env.SortedSets
	env.BlockedPops
}

// StoreCall is a call of a command that may wait for elements.
type StoreCall = command.CallOn[Store]

// onStore returns c as a StoreCall, for the hooks of Part. The store of c must be a Store.
func onStore(c *command.Call) StoreCall { return StoreCall{Call: c, Store: c.Store.(Store)} }

// Call is the request of a command that pops elements from the first of several keys that has any:
// BLPOP, LMPOP, BZPOPMIN, BLMOVE and similar commands. Front says that elements are popped from the
// left end of a list, or the elements with the lowest scores of a sorted set.
type Call struct {
	Kind  *Kind
	Front bool
	Count int // the maximum number of elements, for a reply with an array of them; 0 for one element without an array
	// To is the key of the list to which an element is moved, and ToFront says that it is added at
	// the front. To is nil for commands that move no element.
	ToFront bool
	To      []byte
}

// Kind has the functions that pop elements of one type of key. SortedSet says that the type is a
// sorted set; otherwise it is a list.
type Kind struct {
	SortedSet bool
	// Take pops elements from key, which is locked, in the database db, and writes the reply to w.
	// If there are no elements, found is false and nothing is written.
	Take func(call *Call, st Store, db int, key []byte, w *resp.Writer) (found bool, err error)
	// Weigh returns the number of elements that Take would pop from key, and the number of bytes
	// that Take would copy. found is true if the call would stop at this key, because it has
	// elements or because of an error.
	Weigh func(call *Call, c StoreCall, key []byte) (elements, copied int, found bool)
}

// Span returns the range of the elements that the call pops from a collection of length elements;
// to is exclusive.
func (call *Call) Span(length int) (from, to int) {
	n := min(max(call.Count, 1), length)
	if call.Front {
		return 0, n
	}
	return length - n, length
}

const (
	// popKeyWork is the work, in units, for each key of a pop. The key has to be locked and read,
	// and the client may have to be added to its queue.
	popKeyWork = 8
	// fewPopped is the maximum Count for which popWork does not call Weigh, but counts each element
	// as one unit.
	fewPopped = 64
)

// popWork returns the approximate work, in units, of a pop from the first of keys that has
// elements. It looks at the values only if neither the number of keys nor a small count decides.
func popWork(c StoreCall, call *Call, keys [][]byte) int {
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

// popNow pops from the first of keys that has elements. It returns true if it has replied, with
// elements or an error, and false if no key has elements. The keys must be locked.
func popNow(c StoreCall, call *Call, keys [][]byte) bool {
	for _, key := range keys {
		found, err := call.Kind.Take(call, c.Store, c.Client.Selected(), key, c.W)
		switch {
		case err != nil:
			c.Fail(elements.ElementsError(c.Call, err))
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

// parseMpop parses `numkeys key [key ...] <front | back> [COUNT count]`, where front and back are
// the words for the ends. err is "" on success.
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

// mpopFault returns the error of Redis for args, invalid options after the word for the end. Redis
// checks the options one by one.
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

// maxPopped is larger than the number of elements that a collection can have.
const maxPopped = 1 << 40

// NumkeysAt returns the KeySpec of a command whose argument with the index i is the number of its
// keys, which follow it.
func NumkeysAt(i int) command.KeySpec { return command.KeySpec{Count: i} }
