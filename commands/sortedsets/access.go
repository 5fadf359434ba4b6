package sortedsets

import (
	"errors"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands/internal/elements"
	"github.com/cellserver/cellserver/resp"
)

// sortedCall is the reusable memory of a worker for the commands on sorted sets by which
// applications limit rates with a log of calls, so that these commands allocate nothing. It has the
// arguments and results of a command, and the functions that the store calls, which are bound once.
type sortedCall struct {
	zadd   zaddCall
	by     rangeBy
	window sortedWindow

	added, updated int64
	score          float64
	processed      bool
	removed        int
	// size is the number of elements of the sorted set, and inside the number of its elements in
	// the window.
	size, inside int64

	ctx *command.Call // the running command, if it is one that may have to leave the event loop

	addFunc, removeFunc func(z *collection.SortedSet) error
	countFunc           func(z *collection.SortedSet)
	// none is the empty sorted set that stands for a key that does not exist. It is never changed.
	none collection.SortedSet
}

// readSortedSet calls f with the sorted set at the first argument, or with an empty one if the key
// does not exist. It counts the lookup. If the key has another type, it replies with an error.
func readSortedSet(c storeCall, f func(z *collection.SortedSet)) {
	found, err := c.Store.ReadSortedSet(c.Client.Selected(), c.Args[1], f)
	c.NoteLookup(found)
	switch {
	case err != nil:
		c.Fail(command.StoreError(err))
	case !found:
		f(&command.Scratch[sortedCall](c.Call).none)
	}
}

// writeSortedSet calls f to change the sorted set at the first argument, and returns true on
// success. On failure it returns false, and has replied with the error or moved the command to the
// background.
func writeSortedSet(c storeCall, f func(z *collection.SortedSet) error) bool {
	mark := len(c.W.Buf)
	err := c.Store.WriteSortedSet(c.Client.Selected(), c.Args[1], f)
	if err == nil {
		return true
	}
	c.W.Cut(mark) // Cut removes what f has written before it failed
	switch {
	case c.LeftLoop(err):
	case errors.Is(err, errNaNSum):
		c.Fail(errNaN)
	default:
		c.Fail(elements.ElementsError(c.Call, err))
	}
	return false
}

const errNaN resp.Error = "ERR resulting score is not a number (NaN)"

// errNaNSum is the error that stands for the reply errNaN in functions that the store calls.
var errNaNSum = errors.New("sum of opposite infinities")

func writeScoreReply(c storeCall, score float64) { c.W.Double(score) }

// rangeBy is the kind of a range of elements: a range of ranks, of scores or of members.
type rangeBy uint8

// sortedWindow has the ends of a range of elements: start and stop for ranks, low and high for
// scores, and lowLex and highLex for members. Only the ends of one kind are used.
type sortedWindow struct {
	start, stop     int64
	low, high       scoreBound
	lowLex, highLex lexBound
}
