package chaos_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/internal/storetest"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// prefix stands before every key in the engine.
const prefix = "cs:"

// open opens a store, for as long as the test runs, and returns when it has an answer.
func open(t testing.TB, o remote.Options) *remote.Store {
	t.Helper()
	o.Prefix = prefix
	s, err := remote.Open(o)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	storetest.Await(t, "the store answers", func() error { return submit(s, exists("ready")).Err })
	return s
}

// submit has one ask decided, and waits.
func submit(s *remote.Store, a *decide.Ask) *decide.Ask {
	submitAll(s, a)
	return a
}

// submitAll has asks decided together, and waits.
func submitAll(s *remote.Store, asks ...*decide.Ask) {
	done := make(chan struct{})
	s.Submit(asks, false, func() { close(done) })
	<-done
}

func exists(key string) *decide.Ask {
	return &decide.Ask{Key: []byte(key), Family: decide.Admin, Admin: decide.AdminCall{Op: decide.Exists}}
}

// longest is longer than any test: what is charged stays charged.
const longest = 1000 * time.Hour

// most is more than any test asks for.
const most = 1 << 24

// lasting are limiters of each family that keep what was charged, by name.
var lasting = map[string]func(key string, quantity int64) *decide.Ask{
	"cell": func(key string, quantity int64) *decide.Ask {
		q, err := gcra.NewQuotaPer(most-1, 1, int64(time.Hour), time.Nanosecond)
		if err != nil {
			panic(err) // the numbers above are a rate
		}
		return &decide.Ask{Key: []byte(key), Family: decide.Cell, Quota: q, Quantity: quantity}
	},
	"counter": func(key string, quantity int64) *decide.Ask { return window(key, quantity, slidingwindow.Counter) },
	"fixed":   func(key string, quantity int64) *decide.Ask { return window(key, quantity, slidingwindow.Fixed) },
	"buckets": func(key string, quantity int64) *decide.Ask { return window(key, quantity, slidingwindow.Buckets) },
	"greedy":  func(key string, quantity int64) *decide.Ask { return bucket(key, quantity, tokenbucket.Greedy) },
	"batch":   func(key string, quantity int64) *decide.Ask { return bucket(key, quantity, tokenbucket.Interval) },
}

// familyOf is that which the name of a key begins with.
func familyOf(key string) func(key string, quantity int64) *decide.Ask {
	name, _, _ := strings.Cut(key, "-")
	return lasting[name]
}

func window(key string, quantity int64, mode slidingwindow.Mode) *decide.Ask {
	c := slidingwindow.Call{Mode: mode, Limit: most, Window: longest, Quantity: quantity, First: true}
	if mode == slidingwindow.Buckets {
		c.Slots = 10
	}
	return &decide.Ask{Key: []byte(key), Family: decide.Window, Window: c}
}

func bucket(key string, quantity int64, mode tokenbucket.Mode) *decide.Ask {
	c := tokenbucket.Call{
		Mode: mode, Capacity: most, Count: 1, Period: time.Hour, Interval: time.Hour, Quantity: quantity, Init: most,
	}
	return &decide.Ask{Key: []byte(key), Family: decide.Bucket, Bucket: c}
}

// charged reads out of a value in the engine what was charged to a limiter of lasting, and
// not given back.
func charged(t testing.TB, raw []byte, now limit.Instant) int64 {
	t.Helper()
	s, err := remote.Unpack(raw)
	require.NoError(t, err)
	e := s.Entry
	if e.Expiry <= now {
		return 0
	}
	word := func(i int) int64 { return int64(binary.LittleEndian.Uint64(e.Value[8*i:])) }
	hours := func(until int64) int64 { return limit.CeilDiv(max(0, until-int64(now)), int64(time.Hour)) }
	switch {
	case e.Kind == entry.Cell:
		return hours(int64(entry.CellTAT(&e)))
	case e.Kind.IsWindow():
		return slidingwindow.Describe(e.Kind.WindowMode(), e.Value, now, func(string, int64) {})
	case e.Kind == entry.OfBucket(tokenbucket.Interval):
		return word(1)
	}
	require.Equal(t, entry.OfBucket(tokenbucket.Greedy), e.Kind)
	return hours(word(0))
}

// drawn is a random ask of any family, with all its modes and options, about one of a few
// keys. Times are short, so that limits come and go.
func drawn(r *rand.Rand) *decide.Ask {
	if r.IntN(12) == 0 {
		return drawSeveral(r)
	}
	for {
		a := drawOne(r)
		a.Key = drawKey(r, a.Family)
		if sound(a) {
			return a
		}
	}
}

// sound reports whether the call of an ask can be decided.
func sound(a *decide.Ask) bool {
	switch a.Family {
	case decide.Window:
		return a.Window.Validate() == nil
	case decide.Bucket:
		return a.Bucket.Validate() == nil
	case decide.Lease:
		return a.Lease.Validate() == nil
	}
	return true
}

// drawKey is a key of a family, mostly.
func drawKey(r *rand.Rand, f decide.Family) []byte {
	if r.IntN(6) == 0 {
		return drawTagged(r, f)
	}
	if f == decide.Admin || r.IntN(20) == 0 {
		f = decide.Family(r.IntN(int(decide.Admin)))
	}
	return fmt.Appendf(nil, "k%d-%d", f, r.IntN(15))
}

// drawTagged is one of the keys of an RL.MULTI, which are of one slot: of several slots a
// refused one leaves less behind than in memory.
func drawTagged(r *rand.Rand, f decide.Family) []byte {
	return fmt.Appendf(nil, "{m}%d-%d", f, r.IntN(4))
}

// drawSeveral is an RL.MULTI.
func drawSeveral(r *rand.Rand) *decide.Ask {
	a := &decide.Ask{Family: decide.Several}
	for used := map[string]bool{}; len(a.Clauses) == 0 || r.IntN(3) > 0 && len(used) < 10; {
		one := drawOne(r)
		c := decide.Clause{Key: drawTagged(r, one.Family)}
		if used[string(c.Key)] || !sound(one) {
			continue
		}
		switch one.Family {
		case decide.Cell:
			c.Quota, c.Quantity = &one.Quota, max(0, one.Quantity)
		case decide.Window:
			one.Window.Quantity, one.Window.Charge, one.Window.Penalize = max(0, one.Window.Quantity), 0, false
			c.Window = &one.Window
		case decide.Bucket:
			b := &one.Bucket
			b.Quantity, b.Charge, b.Init, b.Waits, b.MaxWait = max(0, b.Quantity), 0, b.Capacity, false, 0
			c.Bucket = b
		case decide.Lease:
			if one.Lease.Op != concurrency.Acquire {
				continue
			}
			c.Lease = &one.Lease
		default:
			continue
		}
		used[string(c.Key)] = true
		a.Clauses = append(a.Clauses, c)
	}
	return a
}

func drawOne(r *rand.Rand) *decide.Ask {
	switch n := r.IntN(100); {
	case n < 25:
		return &decide.Ask{Family: decide.Cell, Quota: drawQuota(r), Quantity: r.Int64N(7) - 1}
	case n < 50:
		return &decide.Ask{Family: decide.Window, Window: drawWindow(r)}
	case n < 75:
		return &decide.Ask{Family: decide.Bucket, Bucket: drawBucket(r)}
	case n < 90:
		return &decide.Ask{Family: decide.Lease, Lease: drawLease(r)}
	}
	return &decide.Ask{Family: decide.Admin, Admin: drawAdmin(r)}
}

// short is a random time, mostly of milliseconds.
func short(r *rand.Rand) time.Duration {
	return time.Duration(1 + r.Int64N([]int64{1e5, 1e7, 1e9}[r.IntN(3)]))
}

func drawQuota(r *rand.Rand) gcra.Quota {
	for {
		q, err := gcra.NewQuotaPer(r.Int64N(20), 1+r.Int64N(10), int64(short(r)), time.Nanosecond)
		if err == nil {
			return q
		}
	}
}

func drawWindow(r *rand.Rand) slidingwindow.Call {
	c := slidingwindow.Call{
		Mode: slidingwindow.Mode(1 + r.IntN(4)), Limit: 1 + r.Int64N(20), Quantity: r.Int64N(8) - 2,
		Window: []time.Duration{time.Millisecond, 7 * time.Millisecond, 100 * time.Millisecond, time.Second}[r.IntN(4)],
		Charge: slidingwindow.Charge(r.IntN(4)), First: r.IntN(3) == 0, Penalize: r.IntN(8) == 0,
	}
	if c.Mode == slidingwindow.Buckets {
		c.Slots, c.Even = 2+r.IntN(6), r.IntN(4) == 0
	}
	if !c.First && c.Mode != slidingwindow.Log && r.IntN(2) == 0 {
		c.Phase = time.Duration(r.Int64N(int64(c.Window)))
	}
	return c
}

func drawBucket(r *rand.Rand) tokenbucket.Call {
	c := tokenbucket.Call{
		Mode: tokenbucket.Mode(1 + r.IntN(5)), Charge: tokenbucket.Charge(r.IntN(4)), Capacity: 1 + r.Int64N(20),
		Count: 1 + r.Int64N(5), Period: short(r), Quantity: r.Int64N(8) - 2,
	}
	c.Interval, c.Init = limit.Interval(int64(c.Period), time.Nanosecond, c.Count), c.Capacity
	if r.IntN(4) == 0 {
		c.Init = r.Int64N(c.Capacity + 1)
	}
	if r.IntN(4) == 0 {
		c.Waits, c.MaxWait = true, short(r)
	}
	if c.Mode == tokenbucket.Warmup {
		c.Warmup, c.Cold = 10*short(r), 3
	}
	return c
}

func drawLease(r *rand.Rand) concurrency.Call {
	c := concurrency.Call{Op: concurrency.Op(r.IntN(3)), Member: fmt.Appendf(nil, "m%d", r.IntN(30))}
	if c.Op != concurrency.Release {
		c.Lease = short(r)
	}
	if c.Op == concurrency.Acquire {
		c.Limit, c.Peek = 1+r.Int64N(20), r.IntN(6) == 0
	}
	return c
}

func drawAdmin(r *rand.Rand) decide.AdminCall {
	return decide.AdminCall{Op: []decide.Op{decide.Delete, decide.Exists, decide.Type, decide.Expiry, decide.Persist}[r.IntN(5)]}
}
