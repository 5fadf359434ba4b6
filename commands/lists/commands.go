package lists

import (
	"math"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands/internal/elements"
	"github.com/cellserver/cellserver/resp"
)

func commands() []*command.Command {
	const (
		grow   = command.FlagWrite | command.FlagDenyOOM | command.FlagFast
		shrink = command.FlagWrite | command.FlagFast
		length = "the length of the list"
		each   = "O(N log M) for N elements of M"
	)

	return command.Entries(command.Defaults{
		Categories: command.CatList, Group: "list", Since: "1.0.0", Complexity: each,
	}, []*command.Command{
		{
			Name: "lpush", Arity: -3, Flags: grow, Keys: command.OneKey.Uses(command.UsesInserts),
			Summary: "Adds elements to the front of a list, and creates it if needed.", Syntax: "key element [element ...]",
			Reply: length, RunOn: command.On(push(true, false)),
		},
		{
			Name: "rpush", Arity: -3, Flags: grow, Keys: command.OneKey.Uses(command.UsesInserts),
			Summary: "Adds elements to the end of a list, and creates it if needed.", Syntax: "key element [element ...]", Reply: length,
			RunOn: command.On(push(false, false)),
		},
		{
			Name: "lpushx", Arity: -3, Flags: grow, Keys: command.OneKey.Uses(command.UsesInserts),
			Summary: "Adds elements to the front of a list that exists.", Syntax: "key element [element ...]", Reply: length,
			RunOn: command.On(push(true, true)),
		},
		{
			Name: "rpushx", Arity: -3, Flags: grow, Keys: command.OneKey.Uses(command.UsesInserts),
			Summary: "Adds elements to the end of a list that exists.", Syntax: "key element [element ...]", Reply: length,
			RunOn: command.On(push(false, true)),
		},
		{
			Name: "lpop", Arity: -2, Flags: shrink, Keys: command.OneKey.Uses(command.UsesTakes),
			Summary: "Removes the first elements of a list and returns them.", Syntax: "key [count]",
			Reply: "the element or, with a count, an array; null without the key", RunOn: command.On(pop(true)),
		},
		{
			Name: "rpop", Arity: -2, Flags: shrink, Keys: command.OneKey.Uses(command.UsesTakes),
			Summary: "Removes the last elements of a list, from the end on, and returns them.", Syntax: "key [count]",
			Reply: "the element or, with a count, an array; null without the key", RunOn: command.On(pop(false)),
		},
		{
			Name: "llen", Arity: 2, Flags: command.FlagReadonly | command.FlagFast, Keys: command.OneKey.Uses(command.UsesNothing),
			Summary: "Returns the length of a list.", Syntax: "key", Complexity: "O(1)", Reply: length, RunOn: command.On(llen),
		},
		{
			Name: "lindex", Arity: 3, Flags: command.FlagReadonly, Keys: command.OneKey,
			Summary: "Returns the element with an index; -1 is the last.", Syntax: "key index", Complexity: "O(log N)",
			Reply: "the element, or null", RunOn: command.On(lindex),
		},
		{
			Name: "lrange", Arity: 4, Flags: command.FlagReadonly | command.FlagLinear, Keys: command.OneKey,
			Summary: "Returns the elements from one index to another.", Syntax: "key start stop",
			Complexity: "O(log N + M) for M elements returned", Reply: "an array of elements", RunOn: command.On(lrange),
		},
		{
			Name: "lset", Arity: 4, Flags: command.FlagWrite | command.FlagDenyOOM, Keys: command.OneKey.Uses(command.UsesUpdates),
			Summary: "Replaces the element with an index.", Syntax: "key index element", Complexity: "O(log N)", Reply: "OK", RunOn: command.On(lset),
		},
		{
			Name: "lrem", Arity: 4, Flags: command.FlagWrite | command.FlagLinear, Keys: command.OneKey.Uses(command.UsesDeletes),
			Summary: "Removes elements that equal a value.", Syntax: "key count element", Complexity: "O(N)",
			Reply: "how many were removed", RunOn: command.On(lrem),
		},
		{
			Name: "ltrim", Arity: 4, Flags: command.FlagWrite | command.FlagLinear, Keys: command.OneKey.Uses(command.UsesDeletes),
			Summary: "Keeps only the elements from one index to another.", Syntax: "key start stop", Reply: "OK", RunOn: command.On(ltrim),
		},
		{
			Name: "lmove", Arity: 5, Flags: command.FlagWrite | command.FlagDenyOOM,
			Keys:    command.KeySpec{First: 1, Last: 2, Step: 1, Use: command.UsesTakes, Rest: command.UsesInserts},
			Summary: "Moves an element from an end of a list to an end of another.",
			Syntax:  "source destination <LEFT | RIGHT> <LEFT | RIGHT>", Complexity: "O(log N)", Reply: "the element, or null", RunOn: command.On(lmove),
		},
		{
			Name: "rpoplpush", Arity: 3, Flags: command.FlagWrite | command.FlagDenyOOM,
			Keys:    command.KeySpec{First: 1, Last: 2, Step: 1, Use: command.UsesTakes, Rest: command.UsesInserts},
			Summary: "Moves the last element of a list to the front of another.", Syntax: "source destination", Complexity: "O(log N)",
			Reply: "the element, or null", RunOn: command.On(rpoplpush),
		},
	})
}

const errIndexRange resp.Error = "ERR index out of range"

// push returns the Run function of LPUSH or RPUSH and, if existing is set, of LPUSHX or RPUSHX.
// front says that elements are added at the front. The reply is the new length of the list; LPUSHX
// and RPUSHX reply with 0 if there is no list.
func push(front, existing bool) func(storeCall) {
	return func(c storeCall) {
		values, length := c.Args[2:], 0
		err := c.Store.WriteList(c.Client.Selected(), c.Args[1], func(l *collection.List) error {
			switch {
			case existing && l.Len() == 0:
				return nil
			case l.Max > 0 && l.Len()+len(values) > l.Max:
				return collection.ErrFull
			}
			for _, v := range values {
				if err := pushOne(l, front, v); err != nil {
					return err
				}
			}
			length = l.Len()
			return nil
		})
		elements.WroteElements(c.Call, err, func(w *resp.Writer) { w.Int(int64(length)) })
	}
}

// pop returns the Run function of LPOP if front is set, and otherwise of RPOP.
func pop(front bool) func(storeCall) {
	return func(c storeCall) {
		count, many := int64(1), len(c.Args) == 3
		switch {
		case len(c.Args) > 3:
			c.Fail(resp.WrongArity(c.Cmd.Name))
			return
		case many:
			var err resp.Error
			if count, err = command.ParseNotNegative(c.Args[2]); err != "" {
				c.Fail(err)
				return
			}
		}
		found, mark := false, len(c.W.Buf)
		err := c.Store.WriteList(c.Client.Selected(), c.Args[1], func(l *collection.List) error {
			found = l.Len() > 0
			n := int(min(count, int64(l.Len())))
			err := c.StayOnLoop(n)
			if err == nil && n > 1 {
				from := 0
				if !front {
					from = l.Len() - n
				}
				err = c.StayToPop(elements.CopiedOf(c.W, l.Range(from, from+n)))
			}
			if err != nil {
				return err
			}
			if many && found {
				c.W.Array(n)
			}
			for range n {
				v, _ := popOne(l, front)
				c.W.Element(v)
			}
			return nil
		})
		switch {
		case c.LeftLoop(err):
		case err != nil:
			c.W.Cut(mark)
			c.Fail(elements.ElementsError(c.Call, err))
		case !found && many:
			c.W.NullArray()
		case !found:
			c.W.Null()
		}
	}
}

func llen(c storeCall) {
	n := 0
	found, err := c.Store.ReadList(c.Client.Selected(), c.Args[1], func(l *collection.List) { n = l.Len() })
	c.NoteLookup(found)
	elements.WroteElements(c.Call, err, func(w *resp.Writer) { w.Int(int64(n)) })
}

// lindex is the Run function of LINDEX. As in Redis it looks the key up before it parses the index:
// if the key does not exist, any index is accepted.
func lindex(c storeCall) {
	index, ok := arg.Int(c.Args[2])
	mark, some := len(c.W.Buf), false
	found, err := c.Store.ReadList(c.Client.Selected(), c.Args[1], func(l *collection.List) {
		var v []byte
		if v, some = l.At(listIndex(index, l.Len())); some {
			c.W.Element(v)
		}
	})
	c.NoteLookup(found)
	switch {
	case err != nil:
		c.Fail(elements.ElementsError(c.Call, err))
	case found && !ok:
		c.W.Cut(mark)
		c.Fail(resp.ErrNotInteger)
	case !some:
		c.W.Null()
	}
}

// listIndex converts an index that a client has given into an index of a list of length elements. A
// negative index counts from the end. A result of -1 is before the list, and a result of length or
// more is after it.
func listIndex(index int64, length int) int {
	if index < 0 {
		return int(max(index+int64(length), -1))
	}
	return int(min(index, math.MaxInt32))
}

// parseSpan parses the two indices of LRANGE or LTRIM. If they are not integers, it replies with an
// error and ok is false.
func parseSpan(c storeCall) (from, to int64, ok bool) {
	from, ok = arg.Int(c.Args[2])
	if ok {
		to, ok = arg.Int(c.Args[3])
	}
	if !ok {
		c.Fail(resp.ErrNotInteger)
	}
	return from, to, ok
}

// listSpan converts the indices from and to that a client has given, both inclusive, into a range
// of a list of length elements. end is exclusive, and the range is empty if the indices cross.
func listSpan(from, to int64, length int) (start, end int) {
	start, end = max(listIndex(from, length), 0), min(listIndex(to, length)+1, length)
	return start, max(start, end)
}

func lrange(c storeCall) {
	from, to, ok := parseSpan(c)
	if !ok {
		return
	}
	mark, size, large := len(c.W.Buf), 0, false
	found, err := c.Store.ReadList(c.Client.Selected(), c.Args[1], func(l *collection.List) {
		start, end := listSpan(from, to, l.Len())
		if size, large = elements.ReadsBeside(c.Call, elements.Whole{N: end - start, Of: l.Len(), Copied: l.Copied()}); !large {
			elements.WriteList(c.W, l, start, end)
		}
	})
	c.NoteLookup(found)
	switch {
	case err != nil:
		c.Fail(elements.ElementsError(c.Call, err))
	case !found:
		c.W.Array(0)
	case large:
		elements.BesideRead(c, size, func(st store, db int, key []byte, w *resp.Writer) (bool, error) {
			return st.ReadList(db, key, func(l *collection.List) {
				start, end := listSpan(from, to, l.Len())
				elements.WriteList(w, l, start, end)
			})
		}, func(w *resp.Writer) { w.Array(0) })
	default:
		c.Bound(mark)
	}
}

func ltrim(c storeCall) {
	from, to, ok := parseSpan(c)
	if !ok {
		return
	}
	err := c.Store.WriteList(c.Client.Selected(), c.Args[1], func(l *collection.List) error {
		start, end := listSpan(from, to, l.Len())
		if err := c.StayOnLoop(l.Len() - (end - start)); err != nil {
			return err
		}
		l.Trim(start, end)
		return nil
	})
	elements.WroteElements(c.Call, err, (*resp.Writer).OK)
}

// errNoList, errBadIndex and errNoIndex are the errors that LSET finds while the list is locked.
var (
	errNoList   = command.ElementError(resp.ErrNoSuchKey)
	errBadIndex = command.ElementError(errIndexRange)
	errNoIndex  = command.ElementError(resp.ErrNotInteger)
)

func lset(c storeCall) {
	index, ok := arg.Int(c.Args[2])
	err := c.Store.WriteList(c.Client.Selected(), c.Args[1], func(l *collection.List) error {
		at := listIndex(index, l.Len())
		switch {
		case l.Len() == 0:
			return errNoList
		case !ok:
			return errNoIndex
		case !l.Admits(at, c.Args[3]):
			return collection.ErrFull
		case !l.Set(at, c.Args[3]):
			return errBadIndex
		}
		return nil
	})
	elements.WroteElements(c.Call, err, (*resp.Writer).OK)
}

func lrem(c storeCall) {
	count, ok := arg.Int(c.Args[2])
	if !ok {
		c.Fail(resp.ErrNotInteger)
		return
	}
	removed := 0
	err := c.Store.WriteList(c.Client.Selected(), c.Args[1], func(l *collection.List) error {
		if err := c.StayOnLoop(l.Len()); err != nil {
			return err
		}
		removed = l.Remove(c.Args[3], int(min(max(count, -math.MaxInt32), math.MaxInt32)))
		return nil
	})
	elements.WroteElements(c.Call, err, func(w *resp.Writer) { w.Int(int64(removed)) })
}
