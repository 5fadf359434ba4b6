package sortedsets

import (
	"errors"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/elements"
	"github.com/cellserver/cellserver/resp"
)

// sortedCall is what a worker keeps for those commands on sorted sets that a log of
// requests is made of, so that they allocate nothing: what a command wants, what came
// of it, and the functions for the store, bound once.
type sortedCall struct {
	zadd   zaddCall
	by     rangeBy
	window sortedWindow

	added, updated int64
	score          float64
	processed      bool
	removed        int
	// size is how many elements there are, and inside how many in the window.
	size, inside int64

	ctx *command.Call // that of the command, for those that may have to leave the loop

	addFunc, removeFunc func(z *collection.SortedSet) error
	countFunc           func(z *collection.SortedSet)
	// none stands for a key that does not exist; nobody changes it.
	none collection.SortedSet
}

// readSortedSet calls f with the sorted set at the first argument, an empty one if
// there is none, unless the key holds something else.
func readSortedSet(c *command.Call, f func(z *collection.SortedSet)) {
	found, err := c.Store.ReadSortedSet(c.Client.Selected(), c.Args[1], f)
	c.NoteLookup(found)
	switch {
	case err != nil:
		c.Fail(command.StoreError(err))
	case !found:
		f(&command.Scratch[sortedCall](c).none)
	}
}

// writeSortedSet calls f likewise, to change the set. It reports whether all went
// well; if not, it has replied.
func writeSortedSet(c *command.Call, f func(z *collection.SortedSet) error) bool {
	mark := len(c.W.Buf)
	err := c.Store.WriteSortedSet(c.Client.Selected(), c.Args[1], f)
	if err == nil {
		return true
	}
	c.W.Cut(mark) // what f may have replied before it came out
	switch {
	case c.LeftLoop(err):
	case errors.Is(err, errNaNSum):
		c.Fail(errNaN)
	default:
		c.Fail(elements.ElementsError(c, err))
	}
	return false
}

const errNaN resp.Error = "ERR resulting score is not a number (NaN)"

// errNaNSum is errNaN on its way through the store.
var errNaNSum = errors.New("sum of opposite infinities")

// writeScoreReply replies a score.
func writeScoreReply(c *command.Call, score float64) { c.W.Double(score) }

// rangeBy is what a range is one of.
type rangeBy uint8

// sortedWindow is the ends of a range, of which those of one kind are used.
type sortedWindow struct {
	start, stop     int64
	low, high       scoreBound
	lowLex, highLex lexBound
}
