package keyspace_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// tokens returns a call of TB.ACQUIRE at key for some of a million tokens.
func tokens(key string, quantity int64) decide.Ask {
	return decide.Ask{Key: []byte(key), Family: decide.Bucket, Bucket: tokenbucket.Call{
		Mode: tokenbucket.Greedy, Capacity: 1e6, Init: 1e6, Count: 1, Period: time.Second, Interval: time.Second, Quantity: quantity,
	}}
}

// units returns a call of SW.ALLOW at key in a window of ten minutes.
func units(key string, mode slidingwindow.Mode, quantity int64) decide.Ask {
	c := slidingwindow.Call{Mode: mode, Limit: 1e6, Window: 10 * time.Minute, Quantity: quantity, Slots: 100, LogMaxEntries: 1 << 20}
	if mode == slidingwindow.Calendar {
		c.Window, c.Calendar.Unit = 0, calendar.Day
	}
	return decide.Ask{Key: []byte(key), Family: decide.Window, Window: c}
}

func identify(a *decide.Ask, id string) {
	a.ID = idempotency.Call{Token: []byte(id), TTL: time.Minute, Max: 10_000, Seed: 7}
	a.ID.Print = a.Fingerprint()
}

// reserving makes a the reservation id.
func reserving(a decide.Ask, id string, ttl time.Duration) *decide.Ask {
	a.Reserve = reservation.Terms{TTL: ttl, Max: 1_000_000}
	identify(&a, id)
	return &a
}

func settling(key string, op reservation.Op, id string, actual int64) *decide.Ask {
	a := decide.Ask{
		Key: []byte(key), Family: decide.Settle,
		Settlement: reservation.Settlement{Op: op, Actual: actual, TTL: time.Minute},
	}
	identify(&a, id)
	return &a
}

// linking makes a reservation of several keys from asks, the first of which has a link to the others. free says
// that it takes nothing.
func linking(id string, ttl time.Duration, free bool, asks ...decide.Ask) *decide.Ask {
	a := &decide.Ask{Family: decide.Several, Details: make([]limit.Decision, len(asks))}
	a.Reserve = reservation.Terms{TTL: ttl, Max: 1_000_000, Linked: true, Link: true, Free: free}
	for i := range asks {
		c := decide.Clause{Key: asks[i].Key}
		if asks[i].Family == decide.Window {
			c.Window = &asks[i].Window
		} else {
			c.Bucket = &asks[i].Bucket
		}
		if a.Clauses = append(a.Clauses, c); i > 0 {
			a.Reserve.Keys = append(a.Reserve.Keys, c.Key)
		}
	}
	identify(a, id)
	return a
}

func do(t testing.TB, v *keyspace.Handle, a *decide.Ask) *decide.Ask {
	t.Helper()
	v.Decide(a)
	require.NoError(t, a.Err)
	return a
}

// TestReservationsAreRecordedByTheirChanges bounds the bytes of the log for the calls on a key with many
// reservations and many remembered calls.
func TestReservationsAreRecordedByTheirChanges(t *testing.T) {
	effort.Alone(t)
	const most, mostReserving = 128, 136
	limits := map[string]func(key string, n int64) decide.Ask{"bucket": tokens}
	for _, m := range []slidingwindow.Mode{slidingwindow.Counter, slidingwindow.Fixed, slidingwindow.Log, slidingwindow.Buckets, slidingwindow.Calendar} {
		limits[m.String()] = func(key string, n int64) decide.Ask { return units(key, m, n) }
	}
	for name, limited := range limits {
		for _, holds := range []int{0, 1, 1000} {
			t.Run(fmt.Sprint(name, holds), func(t *testing.T) {
				_, v, j, clock := journalled(t)
				key := name
				step := func(a *decide.Ask) *decide.Ask {
					clock.Advance(time.Millisecond)
					v.Refresh()
					return do(t, v, a)
				}
				small := func(what string, most int, a *decide.Ask) {
					j.records = nil
					step(a)
					require.Len(t, j.records, 1, what)
					require.LessOrEqual(t, len(j.records[0])-len(key), most, what)
				}
				step(reserving(limited(key, 3), "first", time.Hour))
				require.Equal(t, reservation.Done, step(settling(key, reservation.Commit, "first", 1)).Settled)
				for i := range holds {
					step(reserving(limited(key, 3), fmt.Sprint("hold", i), time.Hour))
				}
				calls := 10_000
				if holds != 1 {
					calls = effort.Steps(1000, 10_000)
				}
				for i := range calls {
					a := limited(key, 1)
					identify(&a, fmt.Sprint("call", i))
					step(&a)
				}
				a := limited(key, 2)
				small("a charge", most, &a)
				small("a reservation", mostReserving, reserving(limited(key, 3), "one more", time.Minute))
				small("a repetition", most, reserving(limited(key, 3), "one more", time.Minute))
				small("a renewal", most, settling(key, reservation.Renew, "one more", 0))
				small("a settlement", most, settling(key, reservation.Commit, "one more", 1))
				small("another reservation", mostReserving, reserving(limited(key, 3), "and another", time.Second))
				small("an excess", most, settling(key, reservation.Commit, "and another", 7))
				small("a third one", mostReserving, reserving(limited(key, 3), "third", time.Second))
				clock.Advance(time.Second)
				a = limited(key, 2)
				small("a charge that ends one", most, &a)
			})
		}
	}
}

// bytesPerReservation returns the memory of a key with the given number of reservations, divided by their
// number. They are live, or have ended.
func bytesPerReservation(t testing.TB, reservations int, ended bool) float64 {
	keys := 20_000
	if reservations > 4 {
		keys = 4000
	}
	ks, v, _ := open(t, keyspace.Options{})
	defer ks.Close()
	for n := range reservations {
		for i := range keys {
			key, id := fmt.Sprintf("user:%011d", i), fmt.Sprintf("0192f5c2-7d6e-7b3a-9c51-%012d", n)
			do(t, v, reserving(tokens(key, 1), id, time.Hour))
			if ended {
				do(t, v, settling(key, reservation.Commit, id, 1))
			}
		}
	}
	return float64(ks.Stats().Memory) / float64(keys) / float64(reservations)
}

func TestMemoryOfReservations(t *testing.T) {
	effort.Alone(t)
	for n, most := range map[int]float64{1: 190, 4: 110, 100: 90} {
		got := bytesPerReservation(t, n, false)
		t.Logf("%d live reservations at each key: %.1f bytes each, with the key", n, got)
		require.LessOrEqual(t, got, most, "%d live", n)
	}
	got := bytesPerReservation(t, 50, true)
	t.Logf("50 ended reservations at each key: %.1f bytes each, with the key", got)
	require.LessOrEqual(t, got, 65.0)
}

// TestReservationsAreReplicatedAndLoaded makes random calls on keys with reservations. A replica and a keyspace
// into which the log is loaded have the same keys.
func TestReservationsAreReplicatedAndLoaded(t *testing.T) {
	for seed := range effort.Steps(10, 300) {
		r := rand.New(rand.NewPCG(uint64(seed), 31))
		with, v, j, clock := journalled(t)
		replica := newReplica(t, clock.Now())
		names := []string{"bucket", "counter", "fixed", "log", "buckets"}
		limited := func(n int64) decide.Ask {
			switch key := names[r.IntN(len(names))]; key {
			case "counter":
				return units(key, slidingwindow.Counter, n)
			case "fixed":
				return units(key, slidingwindow.Fixed, n)
			case "log":
				return units(key, slidingwindow.Log, n)
			case "buckets":
				return units(key, slidingwindow.Buckets, n)
			default:
				a := tokens(key, n)
				a.Bucket.Interval = time.Second / time.Duration(1+r.IntN(3)/2)
				return a
			}
		}
		for range 400 {
			by := time.Duration(r.Int64N(int64(time.Second)))
			clock.Advance(by)
			replica.clock.Advance(by)
			v.Refresh()
			a := limited(int64(r.IntN(40)) - 5)
			id := fmt.Sprint("id", r.IntN(40))
			switch r.IntN(5) {
			case 4:
				other := limited(1 + int64(r.IntN(40)))
				if a.Bucket.Quantity, a.Window.Quantity = 5, 7; string(a.Key) != string(other.Key) {
					v.Decide(linking(id, time.Duration(1+r.IntN(20))*time.Second, r.IntN(4) == 0, a, other))
				}
			case 0:
				v.Decide(&a)
			case 1:
				identify(&a, id)
				v.Decide(&a)
			case 2:
				a = limited(1 + int64(r.IntN(100)))
				v.Decide(reserving(a, id, time.Duration(1+r.IntN(20))*time.Second))
			default:
				v.Decide(settling(string(a.Key), reservation.Op(1+r.IntN(3)), id, int64(r.IntN(120))))
			}
			for _, e := range all(with) {
				require.NoError(t, effect.CheckEntry(e))
			}
			if r.IntN(16) == 0 {
				replica.follow(t, j)
				now := clock.Now()
				require.Equal(t, told(with, now), told(replica.ks, now), "seed %d", seed)
			}
		}
		loaded := keyspace.New(keyspace.Options{Clock: clock, Shards: 4, Databases: 2})
		j.replay(t, loaded, 0)
		require.Equal(t, told(with, clock.Now()), told(loaded, clock.Now()))
		j.replay(t, loaded, len(j.records)/2)
		require.Equal(t, told(with, clock.Now()), told(loaded, clock.Now()), "effects over a newer state")
		loaded.Close()
	}
}

// TestLinkedReservationsAreSettledAsAWhole reserves and settles overlapping keys from several goroutines. Each
// settlement finds all keys, although others settle and reserve with the same ids meanwhile: nothing stays
// charged.
func TestLinkedReservationsAreSettledAsAWhole(t *testing.T) {
	ks, v, _ := open(t, keyspace.Options{Shards: 4})
	defer ks.Close()
	var all sync.WaitGroup
	var made, settled atomic.Int64
	for g := range 4 {
		all.Go(func() {
			h := ks.NewHandle()
			defer h.Close()
			r := rand.New(rand.NewPCG(uint64(g), 7))
			for range effort.Steps(2000, 50_000) {
				n := r.Perm(6)
				keys := []string{fmt.Sprint("k", n[0]), fmt.Sprint("k", n[1]), fmt.Sprint("k", n[2])}
				id := fmt.Sprint(r.IntN(3))
				a := linking(id, time.Hour, false, tokens(keys[0], 1), tokens(keys[1], 1), tokens(keys[2], 1))
				if h.Decide(a); a.Err == nil && !a.Repeated && !a.Refused {
					made.Add(1)
				}
				c := settling(keys[r.IntN(3)], reservation.Cancel, fmt.Sprint(r.IntN(3)), 0)
				if h.Decide(c); c.Settled == reservation.Done {
					settled.Add(1)
				}
			}
		})
	}
	all.Wait()
	for i := range 6 {
		for id := range 3 {
			if c := do(t, v, settling(fmt.Sprint("k", i), reservation.Cancel, fmt.Sprint(id), 0)); c.Settled == reservation.Done {
				settled.Add(1)
			}
		}
	}
	require.Positive(t, made.Load())
	require.Equal(t, made.Load(), settled.Load())
	for i := range 6 {
		a := tokens(fmt.Sprint("k", i), 0)
		require.EqualValues(t, 1_000_000, do(t, v, &a).Decision.Remaining)
	}
}

// told returns what RL.INFO would show of the keys that have not expired at now, apart from the memory.
func told(ks *keyspace.Keyspace, now limit.Instant) map[string]string {
	m := map[string]string{}
	for key, e := range living(all(ks), now) {
		text := fmt.Sprint("expiry=", e.Expiry, " ")
		_ = decide.Tell(&e, now, nil, func(field, word string, n int64, _ bool) {
			if field != "capacity" {
				text += fmt.Sprint(field, "=", word, n, " ")
			}
		})
		m[key] = text
	}
	return m
}

// TestFullMemoryRefusesReservations shows that settlements pass while memory is full, and reservations do not.
func TestFullMemoryRefusesReservations(t *testing.T) {
	effort.Alone(t)
	_, v, _ := open(t, keyspace.Options{MaxMemory: 8 << 20})
	made := 0
	for ; ; made++ {
		a := reserving(tokens(fmt.Sprint("key", made%1000), 1), fmt.Sprint(made), time.Hour)
		if v.Decide(a); a.Err != nil {
			require.ErrorIs(t, a.Err, limit.ErrFull)
			break
		}
	}
	require.Greater(t, made, 10_000)
	remembered := tokens("key1", 1)
	for i := 0; ; i++ { // there may be room in the memory of the key
		identify(&remembered, fmt.Sprint("call", i))
		if v.Decide(&remembered); remembered.Err != nil {
			require.ErrorIs(t, remembered.Err, limit.ErrFull)
			break
		}
		require.Less(t, i, 1000)
		do(t, v, &remembered)
	}
	for i := range made {
		require.Equal(t, reservation.Done, do(t, v, settling(fmt.Sprint("key", i%1000), reservation.Cancel, fmt.Sprint(i), 0)).Settled)
	}
	a := tokens("key2", 0)
	require.EqualValues(t, 1_000_000, do(t, v, &a).Decision.Remaining)
}

// BenchmarkReserve measures calls on a key with live reservations.
func BenchmarkReserve(b *testing.B) {
	for _, holds := range []int{0, 10, 1000} {
		_, v, _ := open(b, keyspace.Options{})
		for i := range holds {
			do(b, v, reserving(tokens("key", 1), fmt.Sprint("hold", i), time.Hour))
		}
		b.Run(fmt.Sprintf("charge/%d", holds), func(b *testing.B) {
			a := tokens("key", 1)
			a.Bucket.Charge = tokenbucket.Force
			b.ReportAllocs()
			for b.Loop() {
				v.Decide(&a)
			}
		})
		b.Run(fmt.Sprintf("reserve+commit/%d", holds), func(b *testing.B) {
			a, c := reserving(tokens("key", 1), "id-0", time.Hour), settling("key", reservation.Commit, "id-0", 1)
			a.Bucket.Charge, a.ID.Max, c.ID.Max = tokenbucket.Force, 100, 100
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				a.ID = idempotency.Call{Token: fmt.Append(a.ID.Token[:0], n), TTL: time.Minute, Max: 100}
				c.ID = a.ID
				v.Decide(a)
				v.Decide(c)
			}
		})
	}
}
