package sortedsets

import (
	"iter"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/elements"
	"github.com/cellserver/cellserver/resp"
)

func sortedSetCommands() []*command.Command {
	entry := func(name string, arity int, f command.Flag, syntax, complexity, summary, reply string, run func(*command.Call)) *command.Command {
		return &command.Command{
			Name: name, Arity: arity, Flags: f, Keys: command.OneKey, Categories: command.CatSortedSet, Group: "sorted-set", Summary: summary,
			Syntax: syntax, Since: "1.0.0", Complexity: complexity, Reply: reply, Run: run,
		}
	}
	const (
		grow   = command.FlagWrite | command.FlagDenyOOM | command.FlagFast
		take   = command.FlagWrite | command.FlagFast
		look   = command.FlagReadonly | command.FlagFast
		log    = "O(log(N))"
		each   = "O(M*log(N)), M being the number of members named"
		ranged = "O(log(N)+M), M being the number of elements in the range"
		listed = "an array of members, with WITHSCORES of members and scores"
		ranked = "the rank from 0, or null; with WITHSCORE an array of rank and score"
	)
	return append(sortedSetRanges(entry, ranged, listed),
		entry("zadd", -4, grow, "key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]", each,
			"Sets the scores of members of a sorted set.",
			"the number of members added, with CH also of those changed; with INCR the score, or null if an option prevented it", zadd),
		entry("zincrby", 4, grow, "key increment member", log, "Adds to the score of a member.", "the score that it has now", zincrby),
		entry("zrem", -3, take, "key member [member ...]", each, "Removes members.", "the number of members removed", zrem),
		entry("zscore", 3, look, "key member", "O(1)", "Returns the score of a member.", "the score, or null", zscore),
		entry("zmscore", -3, look, "key member [member ...]", "O(M), M being the number of members named",
			"Returns the scores of members.", "an array of scores, null for those that are not members", zmscore),
		entry("zcard", 2, look, "key", "O(1)", "Returns how many elements a sorted set has.", "the number of elements, 0 without a key", zcard),
		entry("zrank", -3, look, "key member [WITHSCORE]", log, "Returns how many elements are before a member.", ranked,
			func(c *command.Call) { zrank(c, false) }),
		entry("zrevrank", -3, look, "key member [WITHSCORE]", log, "Returns how many elements are after a member.", ranked,
			func(c *command.Call) { zrank(c, true) }),
		entry("zpopmin", -2, take, "key [count]", each, "Removes the elements of the lowest scores.", "an array of members and scores",
			func(c *command.Call) { zpop(c, false) }),
		entry("zpopmax", -2, take, "key [count]", each, "Removes the elements of the highest scores.", "an array of members and scores",
			func(c *command.Call) { zpop(c, true) }),
	)
}

func zrem(c *command.Call) {
	removed := int64(0)
	if writeSortedSet(c, func(z *collection.SortedSet) error {
		for _, member := range c.Args[2:] {
			if z.Remove(member) {
				removed++
			}
		}
		return nil
	}) {
		c.W.Int(removed)
	}
}

// scoreOf replies with the score of a member, or null.
func scoreOf(c *command.Call, z *collection.SortedSet, member []byte) {
	if score, ok := z.Score(member); ok {
		writeScoreReply(c, score)
	} else {
		c.W.Null()
	}
}

func zscore(c *command.Call) {
	readSortedSet(c, func(z *collection.SortedSet) { scoreOf(c, z, c.Args[2]) })
}

func zmscore(c *command.Call) {
	readSortedSet(c, func(z *collection.SortedSet) {
		c.W.Array(len(c.Args) - 2)
		for _, member := range c.Args[2:] {
			scoreOf(c, z, member)
		}
	})
}

func zcard(c *command.Call) {
	call := command.Scratch[sortedCall](c).bind()
	call.by = byRank
	readSortedSet(c, call.countFunc)
	if !c.Failed {
		c.W.Int(command.Scratch[sortedCall](c).size)
	}
}

// zrank implements ZRANK, and ZREVRANK if down.
func zrank(c *command.Call, down bool) {
	withScore := len(c.Args) == 4
	switch {
	case len(c.Args) > 4:
		c.Fail(resp.WrongArity(c.Cmd.Name))
		return
	case withScore && !command.EqualFold(c.Args[3], "withscore"):
		c.Fail(resp.ErrSyntax)
		return
	}
	readSortedSet(c, func(z *collection.SortedSet) {
		rank, score, ok := z.Rank(c.Args[2])
		if ok && down {
			rank = z.Len() - 1 - rank
		}
		switch {
		case !ok && withScore:
			c.W.NullArray()
		case !ok:
			c.W.Null()
		case withScore:
			c.W.Array(2)
			c.W.Int(int64(rank))
			writeScoreReply(c, score)
		default:
			c.W.Int(int64(rank))
		}
	})
}

// zpop implements ZPOPMIN, and ZPOPMAX if down. In RESP3 each pair is an array if the command has
// a count.
func zpop(c *command.Call, down bool) {
	count, nested := int64(1), false
	if len(c.Args) > 3 {
		c.Fail(resp.ErrSyntax)
		return
	}
	if len(c.Args) == 3 {
		var ok bool
		if count, ok = arg.Int(c.Args[2]); !ok || count < 0 {
			c.Fail("ERR value is out of range, must be positive")
			return
		}
		nested = c.W.Proto == 3
	}
	writeSortedSet(c, func(z *collection.SortedSet) error {
		n := int(min(count, int64(z.Len())))
		from := 0
		if down {
			from = z.Len() - n
		}
		err := c.StayOnLoop(n)
		if err == nil && n > 1 {
			err = c.StayToPop(elements.CopiedOf(c.W, MembersOf(z, from, from+n)))
		}
		if err != nil {
			return err
		}
		if !WriteElements(c.W, z, from, from+n, RangeReply{Down: down, Scores: true, Nested: nested}) {
			return command.ErrLongReply
		}
		z.RemoveRange(from, from+n)
		return nil
	})
}

// MembersOf returns the members of z from rank from up to, but not including, rank to.
func MembersOf(z *collection.SortedSet, from, to int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for m := range z.Range(from, to) {
			if !yield(m) {
				return
			}
		}
	}
}
