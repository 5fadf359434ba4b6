package sortedsets

import (
	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/commands/blocking"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/elements"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/resp"
)

func popCommands() []*command.Command {
	entry := blocking.Entries("sorted-set", command.CatSortedSet)
	const (
		blocks  = command.FlagBlocking
		numbers = command.FlagMovableKeys
		scored  = "an array of key, member and score, or null"
		scores  = "numkeys key [key ...] <MIN | MAX> [COUNT count]"
	)
	return []*command.Command{
		entry("bzpopmin", -3, blocks|command.FlagFast, blocking.ButLast, blocking.PopSyntax, "Removes the element of the lowest score of the first sorted set that has one, and waits for it if none has.", scored, blocking.Pop(&pops, true)),
		entry("bzpopmax", -3, blocks|command.FlagFast, blocking.ButLast, blocking.PopSyntax, "Removes the element of the highest score of the first sorted set that has one, and waits for it if none has.", scored, blocking.Pop(&pops, false)),
		entry("bzmpop", -5, blocks|numbers|command.FlagLinear, blocking.NumkeysAt(2), "timeout "+scores, "Removes elements from the first sorted set that has some, and waits for them if none has.", blocking.ManyReply, blocking.PopMany(&pops, "MIN", "MAX")),
		entry("zmpop", -4, numbers|command.FlagLinear, blocking.NumkeysAt(1), scores, "Removes elements from the first sorted set that has some.", blocking.ManyReply, blocking.PopManyNow(&pops, "MIN", "MAX")),
	}
}

// pops pops elements from sorted sets.
var pops = blocking.Kind{
	SortedSet: true,
	Take: func(call *blocking.Call, st env.Store, db int, key []byte, w *resp.Writer) (found bool, err error) {
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
	Weigh: func(call *blocking.Call, c *command.Call, key []byte) (n, copied int, found bool) {
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
