package keyspace

import (
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/keyspace/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// room is what RL.INFO can say of a limit: fields 2 and 3 of a call with quantity 0,
// each unless it is unknown, and the arguments without which something is unknown.
type room struct {
	limit, remaining       int64
	hasLimit, hasRemaining bool
	missing                string
}

func (r *room) tell(to describer) {
	if r.hasLimit {
		to.number("limit", r.limit)
	}
	if r.hasRemaining {
		to.number("remaining", r.remaining)
	}
	if r.missing != "" {
		to.text("missing", r.missing)
	}
}

// roomOf says what is known of e's limit, by the parameters in by if there are some.
func roomOf(e *entry.Entry, now limit.Instant, by any) (room, error) {
	silent := func(string, int64) {}
	switch by := by.(type) {
	case *gcra.Quota:
		tat, err := entry.StoredTAT(e)
		if err != nil {
			return room{}, err
		}
		var d limit.Decision
		gcra.DecideInto(&d, tat, now, by, 0)
		return allKnown(d.Limit, d.Remaining), nil
	case *slidingwindow.Call:
		if !e.Kind.IsWindow() {
			return room{}, limit.ErrWrongType
		}
		used := slidingwindow.Describe(e.Kind.WindowMode(), e.Value, now, silent)
		return allKnown(by.Limit, max(0, by.Limit-used)), nil
	case *concurrency.Call:
		if !e.Kind.IsLease() {
			return room{}, limit.ErrWrongType
		}
		used := concurrency.Describe(e.Kind.LeaseMode(), e.Value, now, silent)
		return allKnown(by.Limit, max(0, by.Limit-used)), nil
	case *tokenbucket.Call:
		if !e.Kind.IsBucket() {
			return room{}, limit.ErrWrongType
		}
		return bucketRoom(e, now, by.Capacity), nil
	}
	return storedRoom(e, now), nil
}

// storedRoom says what the state tells by itself.
func storedRoom(e *entry.Entry, now limit.Instant) room {
	switch {
	case e.Kind == entry.Cell:
		return room{missing: "max_burst count period"}
	case e.Kind.IsWindow(), e.Kind.IsLease():
		return room{missing: "limit"}
	case e.Kind.IsBucket():
		return bucketRoom(e, now, tokenbucket.Unknown)
	}
	return room{} // no limiter
}

func bucketRoom(e *entry.Entry, now limit.Instant, capacity int64) room {
	most, remaining := tokenbucket.Room(e.Kind.BucketMode(), e.Value, now, capacity)
	r := room{limit: most, remaining: remaining}
	r.hasLimit, r.hasRemaining = most != tokenbucket.Unknown, remaining != tokenbucket.Unknown
	if !r.hasLimit {
		r.missing = "capacity"
	}
	return r
}

func allKnown(most, remaining int64) room {
	return room{limit: most, remaining: remaining, hasLimit: true, hasRemaining: true}
}
