package sortedsets

import (
	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands/internal/blocking"
	"github.com/cellserver/cellserver/commands/internal/elements"
	"github.com/cellserver/cellserver/resp"
)

func popCommands() []*command.Command {
	const (
		blocks  = command.FlagBlocking
		numbers = command.FlagMovableKeys
		scored  = "an array of key, member and score, or null"
		scores  = "numkeys key [key ...] <MIN | MAX> [COUNT count]"
	)
	return command.Entries(command.Defaults{
		Categories: command.CatSortedSet, Group: "sorted-set", Since: "1.0.0", Complexity: "O(N log M) for N elements of M",
	}, []*command.Command{
		{
			Name: "bzpopmin", Arity: -3, Flags: command.FlagWrite | blocks | command.FlagFast,
			Keys:    blocking.ButLast.Uses(command.UsesTakes),
			Summary: "Removes the element of the lowest score of the first sorted set that has one, and waits for it if none has.",
			Syntax:  blocking.PopSyntax, Reply: scored, RunOn: command.On(blocking.Pop(&pops, true)),
		},
		{
			Name: "bzpopmax", Arity: -3, Flags: command.FlagWrite | blocks | command.FlagFast,
			Keys:    blocking.ButLast.Uses(command.UsesTakes),
			Summary: "Removes the element of the highest score of the first sorted set that has one, and waits for it if none has.",
			Syntax:  blocking.PopSyntax, Reply: scored, RunOn: command.On(blocking.Pop(&pops, false)),
		},
		{
			Name: "bzmpop", Arity: -5, Flags: command.FlagWrite | blocks | numbers | command.FlagLinear,
			Keys:    blocking.NumkeysAt(2).Uses(command.UsesTakes),
			Summary: "Removes elements from the first sorted set that has some, and waits for them if none has.",
			Syntax:  "timeout " + scores, Reply: blocking.ManyReply, RunOn: command.On(blocking.PopMany(&pops, "MIN", "MAX")),
		},
		{
			Name: "zmpop", Arity: -4, Flags: command.FlagWrite | numbers | command.FlagLinear,
			Keys:    blocking.NumkeysAt(1).Uses(command.UsesTakes),
			Summary: "Removes elements from the first sorted set that has some.", Syntax: scores, Reply: blocking.ManyReply,
			RunOn: command.On(blocking.PopManyNow(&pops, "MIN", "MAX")),
		},
	})
}

// pops has the functions that pop elements from sorted sets.
var pops = blocking.Kind{
	SortedSet: true,
	Take: func(call *blocking.Call, st store, db int, key []byte, w *resp.Writer) (found bool, err error) {
		mark := len(w.Buf)
		err = st.WriteSortedSet(db, key, func(z *collection.SortedSet) error {
			found = z.Len() > 0
			return takeScored(call, z, key, w)
		})
		if err != nil {
			w.Cut(mark)
		}
		return found, err
	},
	Weigh: func(call *blocking.Call, c storeCall, key []byte) (n, copied int, found bool) {
		found, err := c.Store.ReadSortedSet(c.Client.Selected(), key, func(z *collection.SortedSet) {
			from, to := call.Span(z.Len())
			if n = to - from; n <= command.MaxLoopWork {
				copied = elements.CopiedOf(c.W, MembersOf(z, from, to))
			}
		})
		return n, copied, found || err != nil
	},
}

func takeScored(call *blocking.Call, z *collection.SortedSet, key []byte, w *resp.Writer) error {
	if z.Len() == 0 {
		return nil
	}
	from, to := call.Span(z.Len())
	if call.Count == 0 {
		member, score, _ := z.At(from)
		w.Array(3)
		w.Bulk(key)
		w.Element(member)
		w.Double(score)
	} else {
		w.Array(2)
		w.Bulk(key)
		if !WriteElements(w, z, from, to, RangeReply{Down: !call.Front, Scores: true, Nested: true}) {
			return command.ErrLongReply
		}
	}
	z.RemoveRange(from, to)
	return nil
}
