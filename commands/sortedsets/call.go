package sortedsets

import (
	"math"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
)

func (call *sortedCall) bind() *sortedCall {
	if call.addFunc == nil {
		call.addFunc, call.removeFunc, call.countFunc = call.add, call.remove, call.count
	}
	return call
}

func zadd(c storeCall) {
	var fault resp.Error
	if command.Scratch[sortedCall](c.Call).zadd, fault = parseZadd(c.Args[2:]); fault != "" {
		c.Fail(fault)
		return
	}
	addScores(c)
}

func zincrby(c storeCall) {
	if _, ok := arg.Score(c.Args[2]); !ok {
		c.Fail(resp.ErrNotFloat)
		return
	}
	command.Scratch[sortedCall](c.Call).zadd = zaddCall{incr: true, pairs: c.Args[2:]}
	addScores(c)
}

// addScores runs ZADD or ZINCRBY with the parsed arguments in the worker's sortedCall. The reply is
// the number of added members, with CH of added and changed ones. ZINCRBY, and ZADD with INCR,
// reply with the new score, or with null if an option prevented the change.
func addScores(c storeCall) {
	call := command.Scratch[sortedCall](c.Call).bind()
	call.added, call.updated, call.processed = 0, 0, false
	if !writeSortedSet(c, call.addFunc) {
		return
	}
	switch {
	case !call.zadd.incr && call.zadd.ch:
		c.W.Int(call.added + call.updated)
	case !call.zadd.incr:
		c.W.Int(call.added)
	case call.processed:
		writeScoreReply(c, call.score)
	default:
		c.W.Null()
	}
}

func (call *sortedCall) add(z *collection.SortedSet) error {
	if err := call.zadd.fits(z); err != nil {
		return err
	}
	for i := 0; i < len(call.zadd.pairs); i += 2 {
		score, _ := arg.Score(call.zadd.pairs[i])
		member := call.zadd.pairs[i+1]
		old, known := z.Score(member)
		if known && call.zadd.incr {
			score += old
		}
		switch {
		case math.IsNaN(score):
			return errNaNSum // a call with INCR has a single pair, so nothing has changed yet
		case call.zadd.forbids(old, score, known):
			continue
		}
		if _, err := z.Set(member, positiveZero(score)); err != nil {
			return err
		}
		call.processed, call.score = true, score
		if !known {
			call.added++
		} else if score != old {
			call.updated++
		}
	}
	return nil
}

func (call *sortedCall) remove(z *collection.SortedSet) error {
	from, to := call.window.ranks(z, call.by, false, z.Len())
	if err := call.ctx.StayOnLoop(to - from); err != nil {
		return err
	}
	call.removed = z.RemoveRange(from, to)
	return nil
}

func (call *sortedCall) count(z *collection.SortedSet) {
	call.size = int64(z.Len())
	if call.by == byScore {
		from, to := call.window.ranks(z, byScore, false, z.Len())
		call.inside = int64(to - from)
	}
}

// forbids reports whether an option of the call prevents that a member gets score. known says
// whether the set has the member; if it has, old is its present score.
func (call *zaddCall) forbids(old, score float64, known bool) bool {
	if !known {
		return call.xx
	}
	return call.nx || call.gt && score <= old || call.lt && score >= old
}

// fits returns [collection.ErrFull] if the members of the call would make z larger than z.Max. So a
// call adds all of its members or none.
func (call *zaddCall) fits(z *collection.SortedSet) error {
	if call.xx || len(call.pairs) == 2 || z.Max == 0 || z.Len()+len(call.pairs)/2 <= z.Max {
		return nil
	}
	added := make(map[string]struct{})
	for i := 1; i < len(call.pairs); i += 2 {
		if _, known := z.Score(call.pairs[i]); !known {
			added[string(call.pairs[i])] = struct{}{}
		}
	}
	if z.Len()+len(added) > z.Max && len(added) > 0 {
		return collection.ErrFull
	}
	return nil
}

// positiveZero returns score, but 0 for -0. Small sorted sets of Redis drop the sign of -0, too.
func positiveZero(score float64) float64 {
	if score == 0 {
		return 0
	}
	return score
}
