package lists

import (
	"math"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/elements"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/resp"
)

func commands() []*command.Command {
	entry := func(name string, arity int, f command.Flag, syntax, summary, complexity, reply string, run func(*command.Call)) *command.Command {
		return &command.Command{
			Name: name, Arity: arity, Flags: f, Keys: command.OneKey, Categories: command.CatList, Group: "list", Summary: summary,
			Syntax: "key" + syntax, Since: "1.0.0", Complexity: complexity, Reply: reply, Run: run,
		}
	}
	const (
		grow   = command.FlagWrite | command.FlagDenyOOM | command.FlagFast
		shrink = command.FlagWrite | command.FlagFast
		length = "the length of the list"
		each   = "O(N log M) for N elements of M"
	)
	move := func(name string, arity int, syntax, summary string, run func(*command.Call)) *command.Command {
		c := entry(name, arity, command.FlagWrite|command.FlagDenyOOM, "", summary, "O(log N)", "the element, or null", run)
		c.Keys, c.Syntax = command.KeySpec{First: 1, Last: 2, Step: 1}, syntax
		return c
	}
	return []*command.Command{
		entry("lpush", -3, grow, " element [element ...]", "Adds elements to the front of a list, and creates it if needed.", each, length, push(true, false)),
		entry("rpush", -3, grow, " element [element ...]", "Adds elements to the end of a list, and creates it if needed.", each, length, push(false, false)),
		entry("lpushx", -3, grow, " element [element ...]", "Adds elements to the front of a list that exists.", each, length, push(true, true)),
		entry("rpushx", -3, grow, " element [element ...]", "Adds elements to the end of a list that exists.", each, length, push(false, true)),
		entry("lpop", -2, shrink, " [count]", "Removes the first elements of a list and returns them.", each, "the element or, with a count, an array; null without the key", pop(true)),
		entry("rpop", -2, shrink, " [count]", "Removes the last elements of a list, from the end on, and returns them.", each, "the element or, with a count, an array; null without the key", pop(false)),
		entry("llen", 2, command.FlagReadonly|command.FlagFast, "", "Returns the length of a list.", "O(1)", length, llen),
		entry("lindex", 3, command.FlagReadonly, " index", "Returns the element with an index; -1 is the last.", "O(log N)", "the element, or null", lindex),
		entry("lrange", 4, command.FlagReadonly|command.FlagLinear, " start stop", "Returns the elements from one index to another.", "O(log N + M) for M elements returned", "an array of elements", lrange),
		entry("lset", 4, command.FlagWrite|command.FlagDenyOOM, " index element", "Replaces the element with an index.", "O(log N)", "OK", lset),
		entry("lrem", 4, command.FlagWrite|command.FlagLinear, " count element", "Removes elements that equal a value.", "O(N)", "how many were removed", lrem),
		entry("ltrim", 4, command.FlagWrite|command.FlagLinear, " start stop", "Keeps only the elements from one index to another.", each, "OK", ltrim),
		move("lmove", 5, "source destination <LEFT | RIGHT> <LEFT | RIGHT>", "Moves an element from an end of a list to an end of another.", lmove),
		move("rpoplpush", 3, "source destination", "Moves the last element of a list to the front of another.", rpoplpush),
	}
}

const errIndexRange resp.Error = "ERR index out of range"

// push is the handler of LPUSH, RPUSH and, for lists that exist, LPUSHX and RPUSHX.
func push(front, existing bool) func(*command.Call) {
	return func(c *command.Call) {
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
		elements.WroteElements(c, err, func(w *resp.Writer) { w.Int(int64(length)) })
	}
}

// pop is the handler of LPOP and RPOP.
func pop(front bool) func(*command.Call) {
	return func(c *command.Call) {
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
			c.Fail(elements.ElementsError(c, err))
		case !found && many:
			c.W.NullArray()
		case !found:
			c.W.Null()
		}
	}
}

func llen(c *command.Call) {
	n := 0
	found, err := c.Store.ReadList(c.Client.Selected(), c.Args[1], func(l *collection.List) { n = l.Len() })
	c.NoteLookup(found)
	elements.WroteElements(c, err, func(w *resp.Writer) { w.Int(int64(n)) })
}

// lindex looks the key up before it parses the index, as Redis does: without the key any index is
// accepted.
func lindex(c *command.Call) {
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
		c.Fail(elements.ElementsError(c, err))
	case found && !ok:
		c.W.Cut(mark)
		c.Fail(resp.ErrNotInteger)
	case !some:
		c.W.Null()
	}
}

// listIndex returns the list index for an index of a client, where negative ones count from the
// end. A result of -1 is before the list, and length or more after it.
func listIndex(index int64, length int) int {
	if index < 0 {
		return int(max(index+int64(length), -1))
	}
	return int(min(index, math.MaxInt32))
}

// parseSpan parses the two indexes of LRANGE and LTRIM.
func parseSpan(c *command.Call) (from, to int64, ok bool) {
	from, ok = arg.Int(c.Args[2])
	if ok {
		to, ok = arg.Int(c.Args[3])
	}
	if !ok {
		c.Fail(resp.ErrNotInteger)
	}
	return from, to, ok
}

// listSpan returns the range of a list of the given length for two indexes of a client. The end
// is exclusive, and the range is empty if the indexes cross.
func listSpan(from, to int64, length int) (start, end int) {
	start, end = max(listIndex(from, length), 0), min(listIndex(to, length)+1, length)
	return start, max(start, end)
}

func lrange(c *command.Call) {
	from, to, ok := parseSpan(c)
	if !ok {
		return
	}
	mark, size, large := len(c.W.Buf), 0, false
	found, err := c.Store.ReadList(c.Client.Selected(), c.Args[1], func(l *collection.List) {
		start, end := listSpan(from, to, l.Len())
		if size, large = elements.ReadsBeside(c, elements.Whole{N: end - start, Of: l.Len(), Copied: l.Copied()}); !large {
			elements.WriteList(c.W, l, start, end)
		}
	})
	c.NoteLookup(found)
	switch {
	case err != nil:
		c.Fail(elements.ElementsError(c, err))
	case !found:
		c.W.Array(0)
	case large:
		elements.BesideRead(c, size, func(st env.Store, db int, key []byte, w *resp.Writer) (bool, error) {
			return st.ReadList(db, key, func(l *collection.List) {
				start, end := listSpan(from, to, l.Len())
				elements.WriteList(w, l, start, end)
			})
		}, func(w *resp.Writer) { w.Array(0) })
	default:
		c.Bound(mark)
	}
}

func ltrim(c *command.Call) {
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
	elements.WroteElements(c, err, (*resp.Writer).OK)
}

// errNoList and errBadIndex are errors of LSET that it finds while the list is locked.
var (
	errNoList   = command.ElementError(resp.ErrNoSuchKey)
	errBadIndex = command.ElementError(errIndexRange)
	errNoIndex  = command.ElementError(resp.ErrNotInteger)
)

func lset(c *command.Call) {
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
	elements.WroteElements(c, err, (*resp.Writer).OK)
}

func lrem(c *command.Call) {
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
	elements.WroteElements(c, err, func(w *resp.Writer) { w.Int(int64(removed)) })
}
