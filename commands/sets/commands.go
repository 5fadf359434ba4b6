package sets

import (
	"bytes"
	"math"
	"math/rand/v2"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands/internal/elements"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/resp"
)

// store is the part of the store that the commands of this group use.
type store interface {
	env.Store
	env.Sets
}

// storeCall is a call of a command of this group.
type storeCall = command.CallOn[store]

// Group returns the command group on sets.
func Group() command.Group {
	return command.Group{Commands: commands()}
}

func commands() []*command.Command {
	const look = command.FlagReadonly | command.FlagFast
	return command.Entries(command.Defaults{
		Keys: command.OneKey, Categories: command.CatSet, Group: "set", Since: "1.0.0", Complexity: "O(N)",
	}, []*command.Command{
		{
			Name: "sadd", Arity: -3, Flags: command.FlagWrite | command.FlagDenyOOM | command.FlagFast,
			Keys:    command.OneKey.Uses(command.UsesInserts),
			Summary: "Adds members to a set, and creates it if needed.", Syntax: "key member [member ...]", Reply: "how many are new",
			RunOn: command.On(sadd),
		},
		{
			Name: "srem", Arity: -3, Flags: command.FlagWrite | command.FlagFast, Keys: command.OneKey.Uses(command.UsesDeletes),
			Summary: "Removes members from a set.", Syntax: "key member [member ...]", Reply: "how many were there", RunOn: command.On(srem),
		},
		{
			Name: "sismember", Arity: 3, Flags: look, Keys: command.OneKey.Uses(command.UsesNothing),
			Summary: "Returns whether a member is in a set.", Syntax: "key member", Complexity: "O(1)", Reply: "1 or 0", RunOn: command.On(sismember),
		},
		{
			Name: "smismember", Arity: -3, Flags: look,
			Summary: "Returns for each member whether it is in a set.", Syntax: "key member [member ...]", Reply: "an array of 1 and 0",
			RunOn: command.On(smismember),
		},
		{
			Name: "scard", Arity: 2, Flags: look, Keys: command.OneKey.Uses(command.UsesNothing),
			Summary: "Returns how many members a set has.", Syntax: "key", Complexity: "O(1)", Reply: "an integer", RunOn: command.On(scard),
		},
		{
			Name: "smembers", Arity: 2, Flags: command.FlagReadonly | command.FlagLinear,
			Summary: "Returns all members of a set.", Syntax: "key", Reply: "a set of members", RunOn: command.On(smembers),
		},
		{
			Name: "spop", Arity: -2, Flags: command.FlagWrite | command.FlagFast, Keys: command.OneKey.Uses(command.UsesTakes),
			Summary: "Removes random members of a set and returns them.", Syntax: "key [count]",
			Reply: "a member or null, with a count a set of members", RunOn: command.On(spop),
		},
		{
			Name: "srandmember", Arity: -2, Flags: command.FlagReadonly | command.FlagLinear,
			Summary: "Returns random members of a set. With a negative count some may be repeated.", Syntax: "key [count]",
			Reply: "a member or null, with a count an array", RunOn: command.On(srandmember),
		},
		{
			Name: "sscan", Arity: -3, Flags: command.FlagReadonly | command.FlagLinear,
			Summary: "Iterates over the members of a set, all in one call.", Syntax: "key cursor [MATCH pattern] [COUNT count]",
			Reply: "the cursor 0 and an array of members", RunOn: command.On(sscan),
		},
	})
}

func sadd(c storeCall) {
	members, added := c.Args[2:], 0
	err := c.Store.WriteSet(c.Client.Selected(), c.Args[1], func(s *collection.Set) error {
		if s.Max > 0 && s.Len()+len(members) > s.Max && s.Len()+countNew(s, members) > s.Max {
			return collection.ErrFull
		}
		for _, m := range members {
			isNew, err := s.Add(m)
			if err != nil {
				return err
			}
			if isNew {
				added++
			}
		}
		return nil
	})
	elements.WroteElements(c.Call, err, func(w *resp.Writer) { w.Int(int64(added)) })
}

// countNew returns the number of different members in members that s does not have.
func countNew(s *collection.Set, members [][]byte) int {
	fresh := make(map[string]struct{})
	for _, m := range members {
		if !s.Has(m) {
			fresh[string(m)] = struct{}{}
		}
	}
	return len(fresh)
}

func srem(c storeCall) {
	removed := 0
	err := c.Store.WriteSet(c.Client.Selected(), c.Args[1], func(s *collection.Set) error {
		for _, m := range c.Args[2:] {
			if s.Remove(m) {
				removed++
			}
		}
		return nil
	})
	elements.WroteElements(c.Call, err, func(w *resp.Writer) { w.Int(int64(removed)) })
}

// readSet calls f with the set at the first argument, or with an empty set if the key does not
// exist; f writes the reply. readSet counts the lookup. If the key has another type, it replies
// with an error.
func readSet(c storeCall, f func(s *collection.Set)) {
	found, err := c.Store.ReadSet(c.Client.Selected(), c.Args[1], f)
	c.NoteLookup(found)
	switch {
	case err != nil:
		c.Fail(elements.ElementsError(c.Call, err))
	case !found:
		f(&collection.Set{})
	}
}

func sismember(c storeCall) {
	readSet(c, func(s *collection.Set) { c.W.Int(elements.OneIf(s.Has(c.Args[2]))) })
}

func smismember(c storeCall) {
	readSet(c, func(s *collection.Set) {
		c.W.Array(len(c.Args) - 2)
		for _, m := range c.Args[2:] {
			c.W.Int(elements.OneIf(s.Has(m)))
		}
	})
}

func scard(c storeCall) {
	readSet(c, func(s *collection.Set) { c.W.Int(int64(s.Len())) })
}

func smembers(c storeCall) {
	mark, size, large := len(c.W.Buf), 0, false
	readSet(c, func(s *collection.Set) {
		if size, large = elements.ReadsBeside(c.Call, elements.Whole{N: s.Len(), Of: s.Len(), Copied: s.Copied()}); !large {
			elements.WriteSet(c.W, s)
		}
	})
	if !large {
		c.Bound(mark)
		return
	}
	elements.BesideRead(c, size, func(st store, db int, key []byte, w *resp.Writer) (bool, error) {
		return st.ReadSet(db, key, func(s *collection.Set) { elements.WriteSet(w, s) })
	}, func(w *resp.Writer) { w.Set(0) })
}

func spop(c storeCall) {
	count, many := int64(1), len(c.Args) == 3
	switch {
	case len(c.Args) > 3:
		c.Fail(resp.ErrSyntax)
		return
	case many:
		var err resp.Error
		if count, err = command.ParseNotNegative(c.Args[2]); err != "" {
			c.Fail(err)
			return
		}
	}
	var picked [][]byte
	err := c.Store.WriteSet(c.Client.Selected(), c.Args[1], func(s *collection.Set) error {
		n := int(min(count, int64(s.Len())))
		if err := c.StayOnLoop(n); err != nil {
			return err
		}
		picked = pick(s, n)
		if n > 1 {
			length := 0
			for _, m := range picked {
				length += len(m) + command.HeadBytes
			}
			if err := c.StayToPop(length); err != nil {
				return err
			}
		}
		for i := range picked {
			picked[i] = bytes.Clone(picked[i]) // the member is copied, because it moves when other members are removed
		}
		for _, m := range picked {
			s.Remove(m)
		}
		return nil
	})
	elements.WroteElements(c.Call, err, func(w *resp.Writer) { writePicked(w, picked, many) })
}

// pick returns n different random members of s, each with the same probability. n must not exceed
// the number of members. The result is valid until s changes.
func pick(s *collection.Set, n int) [][]byte {
	picked := make([][]byte, n)
	if n == 1 {
		picked[0] = s.At(rand.IntN(s.Len()))
		return picked
	}
	moved := make(map[int]int, n) // the swaps of a Fisher-Yates shuffle, of which only the first n steps are made
	at := func(i int) int {
		if to, is := moved[i]; is {
			return to
		}
		return i
	}
	for i := range picked {
		j := i + rand.IntN(s.Len()-i)
		picked[i] = s.At(at(j))
		moved[j] = at(i)
	}
	return picked
}

// writePicked replies with random members: with a set of them if many is true, and otherwise with
// one member or null.
func writePicked(w *resp.Writer, picked [][]byte, many bool) {
	switch {
	case many:
		w.Set(len(picked))
	case len(picked) == 0:
		w.Null()
	}
	for _, m := range picked {
		w.Bulk(m)
	}
}

// maxRepeats is the maximum number of members that SRANDMEMBER with a negative count returns. Redis
// has no such bound.
const maxRepeats = 1 << 20

func srandmember(c storeCall) {
	count, many := int64(1), len(c.Args) == 3
	switch {
	case len(c.Args) > 3:
		c.Fail(resp.ErrSyntax)
		return
	case many:
		var ok bool
		if count, ok = arg.Int(c.Args[2]); !ok {
			c.Fail(resp.ErrNotInteger)
			return
		}
		if count == math.MinInt64 { // the negation of the smallest integer overflows
			c.Fail("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807")
			return
		}
	}
	mark, size, large := len(c.W.Buf), 0, false
	readSet(c, func(s *collection.Set) {
		if count < -maxRepeats && s.Len() > 0 {
			c.Fail("ERR value is out of range")
			return
		}
		if size, large = elements.ReadsBeside(c.Call, elements.Whole{N: randomMembers(s, count), Of: s.Len(), Copied: s.Copied()}); !large {
			writeRandom(c.W, s, count, many)
		}
	})
	if !large {
		c.Bound(mark)
		return
	}
	elements.BesideRead(c, size, func(st store, db int, key []byte, w *resp.Writer) (bool, error) {
		return st.ReadSet(db, key, func(s *collection.Set) { writeRandom(w, s, count, many) })
	}, func(w *resp.Writer) { w.Array(0) })
}

// randomMembers returns the number of members in the reply of SRANDMEMBER. For a positive count
// there are up to count different ones, and for a negative one there are -count, possibly with
// repetitions. There are none if s is empty.
func randomMembers(s *collection.Set, count int64) int {
	if count < 0 && s.Len() > 0 {
		return int(-count)
	}
	return int(min(max(count, 0), int64(s.Len())))
}

// writeRandom replies with the random members that SRANDMEMBER returns for count, each with the
// same probability. many is true if the command has a count.
func writeRandom(w *resp.Writer, s *collection.Set, count int64, many bool) {
	n := randomMembers(s, count)
	if !many {
		if n == 0 {
			w.Null()
		} else {
			w.Element(s.At(rand.IntN(s.Len())))
		}
		return
	}
	reply := elements.WholeFrom(w, n, 1, s)
	w.Array(n)
	switch {
	case count < 0:
		for range n {
			if w.Element(s.At(rand.IntN(s.Len()))); !reply.More() {
				return
			}
		}
	case n < s.Len()/8:
		taken := make(map[int]bool, n)
		for len(taken) < n {
			i := rand.IntN(s.Len())
			if taken[i] {
				continue
			}
			if w.Element(s.At(i)); !reply.More() {
				return
			}
			taken[i] = true
		}
	default:
		writeSome(&reply, s)
	}
}

// writeSome writes reply.N different random members of s, or stops when the reply gets too long. It
// chooses each member with the probability m/n, where m is the number of members that are still
// needed, and n the number of those that were not considered yet (selection sampling).
func writeSome(reply *elements.WholeReply, s *collection.Set) {
	left := s.Len()
	for m := range s.All() {
		if reply.Done == reply.N {
			return
		}
		if rand.IntN(left) < reply.N-reply.Done {
			if reply.W.Element(m); !reply.More() {
				return
			}
		}
		left--
	}
}
