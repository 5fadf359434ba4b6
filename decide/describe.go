package decide

import (
	"time"

	"github.com/cellserver/cellserver/ban"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// describer is the type of the function f of [Tell]. It gets one field: text if isText is true,
// otherwise number.
type describer func(field, text string, number int64, isText bool)

func (f describer) text(field, t string) { f(field, t, 0, true) }

func (f describer) number(field string, n int64) { f(field, "", n, false) }

// Tell calls f for the fields that RL.INFO shows of the entry e at now. The value of a field is
// text if isText is true, otherwise number. The keyspace adds the expiry and the memory of the key,
// and the mode and the length of a collection.
//
// Most limiters get their limits with every call and do not store them. by supplies the limit: it
// is nil, or a *[gcra.Quota], *[slidingwindow.Call], *[tokenbucket.Call] or *[concurrency.Call].
// Only the limit or the capacity in it is used. If by does not fit the kind of e, Tell returns
// [limit.ErrWrongType] and does not call f.
func Tell(e *entry.Entry, now limit.Instant, by any, f func(field, text string, number int64, isText bool)) error {
	tell := describer(f)
	var k Retained
	plain, remembers, holds := k.read(e, now)
	e = &plain
	r, err := roomOf(e, now, by)
	if err != nil {
		return err
	}
	tell.text("type", e.Kind.Type())
	switch {
	case e.Kind == entry.String:
		tell.text("mode", entry.StringEncoding(e.Value))
		tell.number("length", int64(len(e.Value)))
	case e.Kind == entry.Cell:
		tat := entry.CellTAT(e)
		tell.text("mode", "gcra")
		tell.number("tat-ns", int64(tat))
		tell.number("debt-ns", int64(max(0, tat.Sub(now))))
		tell.number("reset-ms", limit.MillisUp(max(0, tat.Sub(now))))
	case !e.Kind.IsCollection():
		tell.text("mode", e.Kind.Encoding())
		if e.Kind == entry.OfWindow(slidingwindow.Calendar) {
			tell.text("calendar", slidingwindow.RuleOf(e.Value))
		}
		describeLimiter(e, now, tell.number)
	}
	r.tell(tell)
	if remembers {
		tell.number("ids", k.IDs)
	}
	if holds {
		tell.number("reservations", k.Reservations)
		tell.number("held", k.Held)
	}
	return nil
}

// Retained describes the data of a key besides the state of its limiter.
type Retained struct {
	// IDs is the number of calls that the key remembers, with the reservations that have ended.
	IDs int64
	// Reservations is the number of live reservations, and Held is the number of their units. Ends is the
	// time until the first of them has passed its time; 0 if there is none.
	Reservations, Held int64
	Ends               time.Duration
}

// read sets k to what the entry e retains at now, and returns the state of its limiter. remembers says
// that e has remembered calls, and holds that it has reservations, live or ended.
func (k *Retained) read(e *entry.Entry, now limit.Instant) (state entry.Entry, remembers, holds bool) {
	state, records, reservations := entry.Parts(e)
	if records != nil {
		k.IDs = idempotency.Count(records, now)
	}
	if reservations != nil {
		var h holding
		state = h.begin(e, now, 0, Admin)
		k.IDs += int64(len(h.ended))
		k.Reservations, k.Held, k.Ends = int64(h.section.Live()), h.section.Units(), h.ends(now)
	}
	return state, k.IDs > 0 || records != nil, reservations != nil
}

// describeLimiter calls emit for the fields of e, which is a window, a lease set, a bucket or the state of bans.
func describeLimiter(e *entry.Entry, now limit.Instant, emit func(field string, n int64)) {
	switch {
	case e.Kind.IsWindow():
		slidingwindow.Describe(e.Kind.WindowMode(), e.Value, now, emit)
	case e.Kind.IsLease():
		concurrency.Describe(e.Kind.LeaseMode(), e.Value, now, emit)
	case e.Kind.IsBucket():
		tokenbucket.Describe(e.Kind.BucketMode(), e.Value, now, emit)
	case e.Kind == entry.Ban:
		i := ban.Describe(e.Value, now)
		emit("denials", i.Denials)
		emit("window-age-ms", i.Window.Milliseconds())
		emit("level", i.Level)
		emit("banned-ms", limit.MillisUp(max(0, i.Until.Sub(now))))
	}
}

// room has the fields of RL.INFO about a limit: the limit and the remaining units, as a call with
// quantity 0 would reply them, and whether each is known. missing has the names of the arguments
// that are needed for the unknown ones, or "".
type room struct {
	limit, remaining       int64
	hasLimit, hasRemaining bool
	missing                string
}

// tell calls the function to for the known fields of r.
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

// roomOf returns the fields of e's limit. by supplies the limit, as in [Tell]. The error is
// [limit.ErrWrongType] if by does not fit e.
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

// storedRoom returns the fields of e's limit that the stored state alone determines, and the names
// of the arguments that are missing for the others.
func storedRoom(e *entry.Entry, now limit.Instant) room {
	switch {
	case e.Kind == entry.Cell:
		return room{missing: "max_burst count period"}
	case e.Kind.IsWindow(), e.Kind.IsLease():
		return room{missing: "limit"}
	case e.Kind.IsBucket():
		return bucketRoom(e, now, tokenbucket.Unknown)
	}
	return room{} // the key holds no limiter
}

// bucketRoom returns the fields of the limit of e, which is a bucket. capacity may be
// [tokenbucket.Unknown].
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
