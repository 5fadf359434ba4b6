package lists

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
		keyed   = "an array of key and element, or null"
		ends    = "numkeys key [key ...] <LEFT | RIGHT> [COUNT count]"
	)
	both := command.KeySpec{First: 1, Last: 2, Step: 1, Use: command.UsesTakes, Rest: command.UsesInserts}
	return command.Entries(command.Defaults{
		Categories: command.CatList, Group: "list", Since: "1.0.0", Complexity: "O(N log M) for N elements of M",
	}, []*command.Command{
		{
			Name: "blpop", Arity: -3, Flags: command.FlagWrite | blocks, Keys: blocking.ButLast.Uses(command.UsesTakes),
			Summary: "Removes the first element of the first list that has one, and waits for it if none has.",
			Syntax:  blocking.PopSyntax, Reply: keyed, RunOn: command.On(blocking.Pop(&listPops, true)),
		},
		{
			Name: "brpop", Arity: -3, Flags: command.FlagWrite | blocks, Keys: blocking.ButLast.Uses(command.UsesTakes),
			Summary: "Removes the last element of the first list that has one, and waits for it if none has.", Syntax: blocking.PopSyntax,
			Reply: keyed, RunOn: command.On(blocking.Pop(&listPops, false)),
		},
		{
			Name: "blmpop", Arity: -5, Flags: command.FlagWrite | blocks | numbers | command.FlagLinear,
			Keys:    blocking.NumkeysAt(2).Uses(command.UsesTakes),
			Summary: "Removes elements from the first list that has some, and waits for them if none has.", Syntax: "timeout " + ends,
			Reply: blocking.ManyReply, RunOn: command.On(blocking.PopMany(&listPops, "LEFT", "RIGHT")),
		},
		{
			Name: "lmpop", Arity: -4, Flags: command.FlagWrite | numbers | command.FlagLinear,
			Keys:    blocking.NumkeysAt(1).Uses(command.UsesTakes),
			Summary: "Removes elements from the first list that has some.", Syntax: ends, Reply: blocking.ManyReply,
			RunOn: command.On(blocking.PopManyNow(&listPops, "LEFT", "RIGHT")),
		},
		{
			Name: "blmove", Arity: 6, Flags: command.FlagWrite | blocks | command.FlagDenyOOM, Keys: both,
			Summary: "Moves an element from an end of a list to an end of another, and waits for it if there is none.",
			Syntax:  "source destination <LEFT | RIGHT> <LEFT | RIGHT> timeout", Reply: "the element, or null", RunOn: command.On(blmove),
		},
		{
			Name: "brpoplpush", Arity: 4, Flags: command.FlagWrite | blocks | command.FlagDenyOOM, Keys: both,
			Summary: "Moves the last element of a list to the front of another, and waits for it if there is none.",
			Syntax:  "source destination timeout", Reply: "the element, or null", RunOn: command.On(brpoplpush),
		},
	})
}

// listPops has the functions that pop elements from lists.
var listPops = blocking.Kind{
	Take: func(call *blocking.Call, st store, db int, key []byte, w *resp.Writer) (found bool, err error) {
		mark := len(w.Buf)
		err = st.WriteList(db, key, func(l *collection.List) error {
			found = l.Len() > 0
			return takeListed(call, l, key, w)
		})
		if err != nil {
			w.Cut(mark)
		}
		return found, err
	},
	Weigh: func(call *blocking.Call, c storeCall, key []byte) (n, copied int, found bool) {
		found, err := c.Store.ReadList(c.Client.Selected(), key, func(l *collection.List) {
			from, to := call.Span(l.Len())
			if n = to - from; n <= command.MaxLoopWork {
				copied = elements.CopiedOf(c.W, l.Range(from, to))
			}
		})
		return n, copied, found || err != nil
	},
}

// movePops has the function that moves an element from one list to another.
var movePops = blocking.Kind{
	Take: func(call *blocking.Call, st store, db int, key []byte, w *resp.Writer) (found bool, err error) {
		value, found, err := listMove{fromFront: call.Front, toFront: call.ToFront}.move(st, db, key, call.To)
		if found && err == nil {
			w.Bulk(value)
		}
		return found, err
	},
}

func takeListed(call *blocking.Call, l *collection.List, key []byte, w *resp.Writer) error {
	if l.Len() == 0 {
		return nil
	}
	from, to := call.Span(l.Len())
	if elements.CopiedOf(w, l.Range(from, to)) > command.Longest(w) {
		return command.ErrLongReply
	}
	w.Array(2)
	w.Bulk(key)
	if call.Count > 0 {
		w.Array(to - from)
	}
	for range to - from {
		v, _ := popOne(l, call.Front)
		w.Element(v)
	}
	return nil
}

func blmove(c storeCall) {
	m, err := parseMove(c.Args)
	if err != "" {
		c.Fail(err)
		return
	}
	blocking.PopOrWait(c, blocking.Call{Kind: &movePops, Front: m.fromFront, ToFront: m.toFront, To: c.Args[2]}, c.Args[1:2], c.Args[5])
}

func brpoplpush(c storeCall) {
	blocking.PopOrWait(c, blocking.Call{Kind: &movePops, ToFront: true, To: c.Args[2]}, c.Args[1:2], c.Args[3])
}
