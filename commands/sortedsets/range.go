package sortedsets

import (
	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands/internal/elements"
	"github.com/cellserver/cellserver/resp"
)

// sortedSetRanges returns the commands on a part of a sorted set.
func sortedSetRanges() []*command.Command {
	const (
		ranged  = "O(log(N)+M), M being the number of elements in the range"
		listed  = "an array of members, with WITHSCORES of members and scores"
		removed = "the number of elements removed"
	)
	return command.Entries(command.Defaults{
		Keys: command.OneKey, Categories: command.CatSortedSet, Group: "sorted-set", Since: "1.0.0", Complexity: ranged,
	}, []*command.Command{
		{
			Name: "zrange", Arity: -4, Flags: command.FlagReadonly | command.FlagLinear,
			Summary: "Returns the elements in a range of ranks, scores or members.",
			Syntax:  "key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]", Reply: listed,
			RunOn: command.On(func(c storeCall) { zrange(c, rangeCall{}) }),
		},
		{
			Name: "zrevrange", Arity: -4, Flags: command.FlagReadonly | command.FlagLinear,
			Summary: "Returns the elements in a range of ranks that count from the end.", Syntax: "key start stop [WITHSCORES]",
			Reply: listed, RunOn: command.On(func(c storeCall) { zrange(c, rangeCall{by: byRank, byFixed: true, down: true, downFixed: true}) }),
		},
		{
			Name: "zrangebyscore", Arity: -4, Flags: command.FlagReadonly | command.FlagLinear,
			Summary: "Returns the elements in a range of scores.", Syntax: "key min max [WITHSCORES] [LIMIT offset count]", Reply: listed,
			RunOn: command.On(func(c storeCall) { zrange(c, rangeCall{by: byScore, byFixed: true, downFixed: true}) }),
		},
		{
			Name: "zrevrangebyscore", Arity: -4, Flags: command.FlagReadonly | command.FlagLinear,
			Summary: "Returns the elements in a range of scores, downwards.", Syntax: "key max min [WITHSCORES] [LIMIT offset count]",
			Reply: listed, RunOn: command.On(func(c storeCall) { zrange(c, rangeCall{by: byScore, byFixed: true, down: true, downFixed: true}) }),
		},
		{
			Name: "zcount", Arity: 4, Flags: command.FlagReadonly | command.FlagFast,
			Summary: "Counts the elements in a range of scores.", Syntax: "key min max", Complexity: "O(log(N)*log(N))",
			Reply: "the number of elements", RunOn: command.On(zcount),
		},
		{
			Name: "zscan", Arity: -3, Flags: command.FlagReadonly | command.FlagLinear,
			Summary: "Iterates over the elements of a sorted set, all in one call.", Syntax: "key cursor [MATCH pattern] [COUNT count]",
			Complexity: "O(N)", Reply: "the cursor 0 and an array of members and scores", RunOn: command.On(zscan),
		},
		{
			Name: "zremrangebyscore", Arity: 4, Flags: command.FlagWrite | command.FlagLinear,
			Keys:    command.OneKey.Uses(command.UsesDeletes),
			Summary: "Removes the elements in a range of scores.", Syntax: "key min max", Reply: removed,
			RunOn: command.On(func(c storeCall) { zremrange(c, byScore) }),
		},
		{
			Name: "zremrangebyrank", Arity: 4, Flags: command.FlagWrite | command.FlagLinear,
			Keys:    command.OneKey.Uses(command.UsesDeletes),
			Summary: "Removes the elements in a range of ranks.", Syntax: "key start stop", Reply: removed,
			RunOn: command.On(func(c storeCall) { zremrange(c, byRank) }),
		},
	})
}

const (
	byRank rangeBy = iota
	byScore
	byLex
)

// rangeCall has the parsed arguments of ZRANGE or of one of the commands that ZRANGE has replaced.
type rangeCall struct {
	by      rangeBy
	byFixed bool // whether the kind of the range is set, by the command or by an option
	down    bool
	// downFixed says that the direction is set, by the command or by an option.
	downFixed     bool
	scores        bool
	offset, count int64 // the arguments of LIMIT; a negative count means all elements
	window        sortedWindow
}

const (
	errLimitByRank  resp.Error = "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"
	errScoresByLex  resp.Error = "ERR syntax error, WITHSCORES not supported in combination with BYLEX"
	errNoScoreBound resp.Error = "ERR min or max is not a float"
	errNoLexBound   resp.Error = "ERR min or max not valid string range item"
)

// parse parses the two ends of the range, and options. It must be called once, because it changes
// byFixed and downFixed. It reports errors in the order of Redis; the error is "" on success.
func (r *rangeCall) parse(ends, options [][]byte) resp.Error {
	r.count = -1
	for len(options) > 0 {
		option := options[0]
		switch {
		case command.EqualFold(option, "withscores"):
			r.scores = true
		case command.EqualFold(option, "limit") && len(options) > 2:
			var offsetOK, countOK bool
			r.offset, offsetOK = arg.Int(options[1])
			r.count, countOK = arg.Int(options[2])
			if !offsetOK || !countOK {
				return resp.ErrNotInteger
			}
			options = options[2:]
		case !r.downFixed && command.EqualFold(option, "rev"):
			r.down, r.downFixed = true, true
		case !r.byFixed && command.EqualFold(option, "byscore"):
			r.by, r.byFixed = byScore, true
		case !r.byFixed && command.EqualFold(option, "bylex"):
			r.by, r.byFixed = byLex, true
		default:
			return resp.ErrSyntax
		}
		options = options[1:]
	}
	switch {
	case r.count != -1 && r.by == byRank:
		return errLimitByRank
	case r.scores && r.by == byLex:
		return errScoresByLex
	}
	first, last := ends[0], ends[1]
	if r.down && r.by != byRank {
		first, last = last, first
	}
	return r.window.parse(r.by, first, last)
}

func (w *sortedWindow) parse(by rangeBy, first, last []byte) resp.Error {
	var ok, alsoOK bool
	switch by {
	case byScore:
		w.low, ok = parseScoreBound(first)
		w.high, alsoOK = parseScoreBound(last)
		if !ok || !alsoOK {
			return errNoScoreBound
		}
	case byLex:
		w.lowLex, ok = parseLexBound(first)
		w.highLex, alsoOK = parseLexBound(last)
		if !ok || !alsoOK {
			return errNoLexBound
		}
	default:
		w.start, ok = arg.Int(first)
		w.stop, alsoOK = arg.Int(last)
		if !ok || !alsoOK {
			return resp.ErrNotInteger
		}
	}
	return ""
}

// ranks returns the ranks of the elements of z in the window; to is exclusive. If down is set, the
// ends of a window of ranks count from the last element. A window of scores or members is cut to
// its first most elements, or to its last ones if down is set.
func (w *sortedWindow) ranks(z *collection.SortedSet, by rangeBy, down bool, most int) (from, to int) {
	switch by {
	case byScore:
		return searchEnds(z, down, most,
			func(_ []byte, score float64) bool { return !w.low.below(score) },
			func(_ []byte, score float64) bool { return w.high.above(score) })
	case byLex:
		return searchEnds(z, down, most,
			func(member []byte, _ float64) bool { return !w.lowLex.below(member) },
			func(member []byte, _ float64) bool { return w.highLex.above(member) })
	default:
		n := int64(z.Len())
		start, stop := w.start, w.stop
		if start < 0 {
			start = max(start+n, 0)
		}
		if stop < 0 {
			stop += n
		}
		if start > stop || start >= n {
			return 0, 0
		}
		stop = min(stop, n-1)
		from, to = int(start), int(stop)+1
		if down {
			from, to = int(n)-to, int(n)-from
		}
	}
	return from, to
}

// searchEnds returns the ranks of the elements of z for which entered is true and left is false; to
// is exclusive. The range is cut to its first most elements, or to its last ones if down is set.
func searchEnds(z *collection.SortedSet, down bool, most int, entered, left func([]byte, float64) bool) (from, to int) {
	if down {
		to = z.Search(left)
		return z.SearchIn(max(to-most, 0), to, entered), to
	}
	from = z.Search(entered)
	return from, z.SearchIn(from, from+most, left)
}

// zrange is the Run function of ZRANGE and similar commands. call has the part of the call that the
// name of the command determines; the arguments give the rest.
func zrange(c storeCall, call rangeCall) {
	unparsed := call
	if fault := call.parse(c.Args[2:4], c.Args[4:]); fault != "" {
		c.Fail(fault)
		return
	}
	size, large := 0, false
	readSortedSet(c, func(z *collection.SortedSet) {
		from, to := call.ranks(z)
		if size, large = elements.ReadsBeside(c.Call, elements.Whole{N: to - from, Of: z.Len(), Copied: z.Copied()}); !large && !WriteElements(c.W, z, from, to, call.reply(c.W)) {
			c.Fail(command.TooLong(c.W))
		}
	})
	if !large {
		return
	}
	args := command.CloneArgs(c.Args)
	call = unparsed
	_ = call.parse(args[2:4], args[4:]) // an error is impossible, because the same arguments were parsed before
	elements.BesideRead(c, size, func(st store, db int, key []byte, w *resp.Writer) (bool, error) {
		return st.ReadSortedSet(db, key, func(z *collection.SortedSet) {
			from, to := call.ranks(z)
			if !WriteElements(w, z, from, to, call.reply(w)) {
				w.Error(command.ErrValuesTooLong)
			}
		})
	}, func(w *resp.Writer) { w.Array(0) })
}

// ranks returns the ranks of the elements of z in the range, after LIMIT; to is exclusive.
func (r *rangeCall) ranks(z *collection.SortedSet) (from, to int) {
	from, to = r.window.ranks(z, r.by, r.down, r.most(z.Len()))
	if r.by != byRank {
		from, to = r.limit(from, to)
	}
	return from, to
}

// reply returns the form in which the elements are written to w.
func (r *rangeCall) reply(w *resp.Writer) RangeReply {
	return RangeReply{Down: r.down, Scores: r.scores, Nested: r.scores && w.Proto == 3}
}

// most returns how many elements of the range are needed to apply LIMIT. n is the number of
// elements of the set.
func (r *rangeCall) most(n int) int {
	if r.count < 0 || r.offset < 0 || r.offset > int64(n) || r.count > int64(n) {
		return n
	}
	return int(r.offset + r.count)
}

// limit applies LIMIT to the ranks from and to of the elements in the range. As in Redis, a
// negative offset leaves no elements.
func (r *rangeCall) limit(from, to int) (int, int) {
	n := int64(to - from)
	if r.offset < 0 || r.offset >= n {
		return 0, 0
	}
	count := n - r.offset
	if r.count >= 0 {
		count = min(count, r.count)
	}
	if r.down {
		to -= int(r.offset)
		return to - int(count), to
	}
	from += int(r.offset)
	return from, from + int(count)
}

// RangeReply is the form in which WriteElements writes elements: in descending order if Down is
// set, and with their scores if Scores is set.
type RangeReply struct {
	Down, Scores bool
	// Nested says that each member and its score are written as an array. It requires Scores.
	Nested bool
}

// WriteElements replies with the elements of z from rank from up to, but not including, rank to. If
// the reply would be too long, it writes nothing and returns false.
func WriteElements(w *resp.Writer, z *collection.SortedSet, from, to int, r RangeReply) bool {
	reply := elements.WholeFrom(w, to-from, 1, z)
	if r.Scores && !r.Nested {
		w.Array(2 * (to - from))
	} else {
		w.Array(to - from)
	}
	all := z.Range(from, to)
	if r.Down {
		all = z.RangeDown(from, to)
	}
	for member, score := range all {
		if r.Nested {
			w.Array(2)
		}
		w.Element(member)
		if r.Scores {
			w.Double(score)
		}
		if !reply.More() {
			w.Cut(reply.Mark)
			return false
		}
	}
	return true
}

func zcount(c storeCall) {
	call := command.Scratch[sortedCall](c.Call).bind()
	call.by = byScore
	if fault := call.window.parse(byScore, c.Args[2], c.Args[3]); fault != "" {
		c.Fail(fault)
		return
	}
	readSortedSet(c, call.countFunc)
	if !c.Failed {
		c.W.Int(call.inside)
	}
}

// zremrange is the Run function of ZREMRANGEBYSCORE and ZREMRANGEBYRANK, depending on by.
func zremrange(c storeCall, by rangeBy) {
	call := command.Scratch[sortedCall](c.Call).bind()
	call.by, call.ctx = by, c.Call
	if fault := call.window.parse(by, c.Args[2], c.Args[3]); fault != "" {
		c.Fail(fault)
		return
	}
	if writeSortedSet(c, call.removeFunc) {
		c.W.Int(int64(call.removed))
	}
}
