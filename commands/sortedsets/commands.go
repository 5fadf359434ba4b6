package sortedsets

import (
	"iter"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands/internal/elements"
	"github.com/cellserver/cellserver/resp"
)

func sortedSetCommands() []*command.Command {
	const (
		grow   = command.FlagWrite | command.FlagDenyOOM | command.FlagFast
		take   = command.FlagWrite | command.FlagFast
		look   = command.FlagReadonly | command.FlagFast
		log    = "O(log(N))"
		each   = "O(M*log(N)), M being the number of members named"
		ranked = "the rank from 0, or null; with WITHSCORE an array of rank and score"
	)
	return command.Entries(command.Defaults{
		Keys: command.OneKey, Categories: command.CatSortedSet, Group: "sorted-set", Since: "1.0.0", Complexity: each,
	}, []*command.Command{
		{
			Name: "zadd", Arity: -4, Flags: grow, Keys: command.OneKey.Uses(command.UsesUpdates),
			Summary: "Sets the scores of members of a sorted set.",
			Syntax:  "key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]",
			Reply:   "the number of members added, with CH also of those changed; with INCR the score, or null if an option prevented it",
			RunOn:   command.On(zadd),
		},
		{
			Name: "zincrby", Arity: 4, Flags: grow,
			Summary: "Adds to the score of a member.", Syntax: "key increment member", Complexity: log,
			Reply: "the score that it has now", RunOn: command.On(zincrby),
		},
		{
			Name: "zrem", Arity: -3, Flags: take, Keys: command.OneKey.Uses(command.UsesDeletes),
			Summary: "Removes members.", Syntax: "key member [member ...]", Reply: "the number of members removed", RunOn: command.On(zrem),
		},
		{
			Name: "zscore", Arity: 3, Flags: look,
			Summary: "Returns the score of a member.", Syntax: "key member", Complexity: "O(1)", Reply: "the score, or null", RunOn: command.On(zscore),
		},
		{
			Name: "zmscore", Arity: -3, Flags: look,
			Summary: "Returns the scores of members.", Syntax: "key member [member ...]",
			Complexity: "O(M), M being the number of members named", Reply: "an array of scores, null for those that are not members",
			RunOn: command.On(zmscore),
		},
		{
			Name: "zcard", Arity: 2, Flags: look, Keys: command.OneKey.Uses(command.UsesNothing),
			Summary: "Returns how many elements a sorted set has.", Syntax: "key", Complexity: "O(1)",
			Reply: "the number of elements, 0 without a key", RunOn: command.On(zcard),
		},
		{
			Name: "zrank", Arity: -3, Flags: look,
			Summary: "Returns how many elements are before a member.", Syntax: "key member [WITHSCORE]", Complexity: log, Reply: ranked,
			RunOn: command.On(func(c storeCall) { zrank(c, false) }),
		},
		{
			Name: "zrevrank", Arity: -3, Flags: look,
			Summary: "Returns how many elements are after a member.", Syntax: "key member [WITHSCORE]", Complexity: log, Reply: ranked,
			RunOn: command.On(func(c storeCall) { zrank(c, true) }),
		},
		{
			Name: "zpopmin", Arity: -2, Flags: take, Keys: command.OneKey.Uses(command.UsesTakes),
			Summary: "Removes the elements of the lowest scores.", Syntax: "key [count]", Reply: "an array of members and scores",
			RunOn: command.On(func(c storeCall) { zpop(c, false) }),
		},
		{
			Name: "zpopmax", Arity: -2, Flags: take, Keys: command.OneKey.Uses(command.UsesTakes),
			Summary: "Removes the elements of the highest scores.", Syntax: "key [count]", Reply: "an array of members and scores",
			RunOn: command.On(func(c storeCall) { zpop(c, true) }),
		},
	})
}

func zrem(c storeCall) {
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

// scoreOf replies with the score of member in z, or with null if z does not have it.
func scoreOf(c storeCall, z *collection.SortedSet, member []byte) {
	if score, ok := z.Score(member); ok {
		writeScoreReply(c, score)
	} else {
		c.W.Null()
	}
}

func zscore(c storeCall) {
	readSortedSet(c, func(z *collection.SortedSet) { scoreOf(c, z, c.Args[2]) })
}

func zmscore(c storeCall) {
	readSortedSet(c, func(z *collection.SortedSet) {
		c.W.Array(len(c.Args) - 2)
		for _, member := range c.Args[2:] {
			scoreOf(c, z, member)
		}
	})
}

func zcard(c storeCall) {
	call := command.Scratch[sortedCall](c.Call).bind()
	call.by = byRank
	readSortedSet(c, call.countFunc)
	if !c.Failed {
		c.W.Int(command.Scratch[sortedCall](c.Call).size)
	}
}

// zrank is the Run function of ZRANK and, if down is set, of ZREVRANK. The reply is null if the
// sorted set does not have the member.
func zrank(c storeCall, down bool) {
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

// zpop is the Run function of ZPOPMIN and, if down is set, of ZPOPMAX. In RESP3 each pair of member
// and score is an array if the command has a count.
func zpop(c storeCall, down bool) {
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

// MembersOf returns an iterator over the members of z from rank from up to, but not including, rank
// to. z must not change during the iteration.
func MembersOf(z *collection.SortedSet, from, to int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for m := range z.Range(from, to) {
			if !yield(m) {
				return
			}
		}
	}
}
