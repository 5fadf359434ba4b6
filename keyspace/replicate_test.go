package keyspace_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/asks"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/limit"
)

// replica is a keyspace that follows another one by its journal.
type replica struct {
	ks    *keyspace.Keyspace
	clock *clocktest.Clock
	at    int // number of records that it has applied
}

// newReplica returns a replica whose clock starts at start, and which removes nothing yet.
func newReplica(t testing.TB, start limit.Instant) *replica {
	r := &replica{clock: clocktest.New(start)}
	r.ks = keyspace.New(keyspace.Options{Clock: r.clock, Shards: 8, Databases: 2})
	t.Cleanup(r.ks.Close)
	r.ks.SweepTo(limit.MinInstant)
	return r
}

// follow applies all records that the tape has so far.
func (r *replica) follow(t testing.TB, j *tape) {
	for ; r.at < len(j.records); r.at++ {
		require.NoError(t, r.ks.ApplyRecord(j.records[r.at], r.clock.Now()))
	}
}

// transact makes several changes at once.
func transact(t testing.TB, v *keyspace.Handle, rng *rand.Rand) {
	v.LockAll()
	defer v.Unlock()
	for range 1 + rng.IntN(8) {
		require.NoError(t, operateOnAny(v, rng))
	}
	if rng.IntN(30) == 0 {
		v.FlushAll()
		operate(v, rng)
	}
}

// TestReplicaBecomesEqual has a replica copy a keyspace of all kinds in steps, each followed by all
// records until then, while the keyspace changes all the time, and follow it for a while. Meanwhile
// the clock of the replica is fast, slow or right; it is set right in the end.
func TestReplicaBecomesEqual(t *testing.T) {
	for seed, off := range []time.Duration{0, time.Hour, -time.Hour} {
		ks, v, j, clock := journalled(t)
		rng := rand.New(rand.NewPCG(uint64(seed), 5))
		live := func() {
			clock.Advance(time.Duration(rng.IntN(300)) * time.Millisecond)
			v.Refresh()
			if rng.IntN(10) == 0 {
				transact(t, v, rng)
			} else {
				require.NoError(t, operateOnAny(v, rng))
			}
			if rng.IntN(30) == 0 {
				ks.Sweep(1000)
			}
		}
		for range 1500 {
			live()
		}
		r := newReplica(t, clock.Now().Add(off))
		churn := func(n int) {
			for range n {
				live()
				r.clock.Advance(time.Duration(rng.IntN(300)) * time.Millisecond)
			}
			if rng.IntN(3) == 0 {
				r.ks.Sweep(1000)
			}
		}
		r.at = len(j.records)
		restored := 0
		steps := ks.Steps(func(db int, key []byte, e entry.Entry) {
			restored++
			require.NoError(t, r.ks.Restore(db, key, e))
		})
		for more := true; more; {
			var err error
			_, more, err = steps.Next(true)
			require.NoError(t, err)
			churn(rng.IntN(20))
			r.follow(t, j)
		}
		steps.Close()
		require.Positive(t, restored)
		r.ks.Exclusively(func() {
			r.clock.Set(clock.Now())
			r.ks.ResetInstants(clock.Now())
			r.ks.SweepTo(clock.Now())
		})
		require.Equal(t, meaning(ks, clock.Now()), meaning(r.ks, clock.Now()), "seed %d", seed)
		for range 30 {
			churn(20)
			r.follow(t, j)
			r.clock.Set(clock.Now())
			r.ks.SweepTo(clock.Now())
		}
		r.follow(t, j)
		require.Equal(t, meaning(ks, clock.Now()), meaning(r.ks, clock.Now()), "seed %d", seed)
		require.NoError(t, r.ks.Whole())
	}
}

// recordOf returns the record of f's effects.
func recordOf(t testing.TB, f func(v *keyspace.Handle)) []byte {
	_, v, j, _ := journalled(t)
	v.LockAll()
	f(v)
	v.Unlock()
	require.Len(t, j.records, 1)
	return j.records[0]
}

func putString(t testing.TB, v *keyspace.Handle, db int, key, value string, expiry limit.Instant) {
	_, err := v.SetString(db, []byte(key), []byte(value), keyspace.SetOptions{Expiry: expiry})
	require.NoError(t, err)
}

func TestAppliedRecordsTellWhoWatchesAndWaits(t *testing.T) {
	for _, more := range []bool{false, true} { // also with other effects in the record
		ks, v, _ := open(t, keyspace.Options{Databases: 2})
		j := &tape{}
		ks.SetJournal(j)
		putString(t, v, 0, "gone", "x", entry.NoExpiry)
		records := len(j.records)
		log := &changeLog{}
		ks.ObserveSweep(log)
		ks.StartObserving()
		apply := func(f func(v *keyspace.Handle)) {
			record := recordOf(t, func(v *keyspace.Handle) {
				f(v)
				if more {
					putString(t, v, 1, "other", "x", entry.NoExpiry)
				}
			})
			require.NoError(t, ks.ApplyRecord(record, t0))
		}
		var ready []string
		w := popper(entry.List, "w", &ready)
		v.Lock([]keyspace.Ref{{Key: []byte("list")}})
		v.EnqueuePop(0, [][]byte{[]byte("list")}, w)
		v.Unlock()
		waits := newWaiting()
		v.Enqueue(0, []byte("gone"), &waits.Waiter)
		var watcher [3]keyspace.Watcher
		for i, key := range []string{"list", "gone", "untouched"} {
			v.Watch(&watcher[i], 0, []byte(key))
		}
		apply(func(v *keyspace.Handle) { pushTo(t, v, "list", "1") })
		apply(func(v *keyspace.Handle) {
			putString(t, v, 0, "gone", "x", entry.NoExpiry)
			v.Delete(0, []byte("gone"))
		})
		require.Equal(t, []string{"w:list"}, ready)
		require.Positive(t, waits.woken)
		require.True(t, v.Dirty(&watcher[0]))
		require.True(t, v.Dirty(&watcher[1]))
		require.False(t, v.Dirty(&watcher[2]))
		require.False(t, v.Exists(0, []byte("gone")))
		want := []string{"list", "released", "gone", "gone", "released"}
		if more {
			want = []string{"list", "other", "released", "gone", "gone", "other", "released"}
		}
		require.Equal(t, want, log.take())
		apply(func(v *keyspace.Handle) { v.Flush(0) })
		require.Equal(t, "flushed", log.take()[0])
		require.Len(t, j.records, records, "records of another are not recorded again")
	}
}

// TestApplyingDecidesNothing applies entries that have expired by the local clock, and entries of
// the past and of the future.
func TestApplyingDecidesNothing(t *testing.T) {
	ks, v, clock := open(t, keyspace.Options{Shards: 1})
	ks.SweepTo(limit.MinInstant)
	clock.Advance(time.Hour)
	record := recordOf(t, func(v *keyspace.Handle) { putString(t, v, 0, "k", "x", v.Now().Add(time.Second)) })
	require.NoError(t, ks.ApplyRecord(record, t0))
	v.Refresh()
	require.False(t, v.Exists(0, []byte("k")))
	require.Equal(t, 1, v.Len(0), "it may be prolonged")
	ks.Exclusively(func() {
		clock.Set(t0)
		ks.ResetInstants(t0)
	})
	v.Refresh()
	require.True(t, v.Exists(0, []byte("k")))
	ahead := t0.Add(time.Minute)
	require.NoError(t, ks.ApplyRecord(record, ahead))
	require.False(t, v.Exists(0, []byte("k")))
	require.Equal(t, ahead, v.Now(), "nothing happens to a key before what has happened")
}

// TestBadRecordsChangeNothing applies records with one wrong effect after right ones.
func TestBadRecordsChangeNothing(t *testing.T) {
	ks, _, _ := open(t, keyspace.Options{Databases: 2})
	good := recordOf(t, func(v *keyspace.Handle) {
		rng := rand.New(rand.NewPCG(3, 4))
		for range 300 {
			require.NoError(t, operateOnAny(v, rng))
		}
	})
	require.NoError(t, ks.ApplyRecord(good, t0))
	before := all(ks)
	patch := func(k entry.Kind, delta string) []byte {
		var r effect.Record
		r.Patch(0, []byte("p"), k, entry.NoExpiry, []byte(delta))
		b, _ := r.Parts()
		return b
	}
	put := func(db int, k entry.Kind, value string) []byte {
		var r effect.Record
		r.Put(db, []byte("p"), &entry.Entry{Kind: k, Expiry: entry.NoExpiry, Value: []byte(value)})
		b, _ := r.Parts()
		return b
	}
	right := recordOf(t, func(v *keyspace.Handle) { v.FlushAll(); putString(t, v, 0, "new", "x", entry.NoExpiry) })
	for i, bad := range [][]byte{
		put(2, entry.String, "x"), put(0, 7, "x"), put(0, entry.Hash, ""), put(0, entry.Cell, "x"),
		put(0, 16, "x"), put(0, 32, "x"), put(0, 48, "x"),
		{65, 2},
		{64},
		{64, 2, 1, 'k'},
		{67, 0, 0},
		{0, 0, 0},
		patch(entry.String, "x"), patch(entry.List, "x"), patch(entry.Set, "\xff"), patch(18, "x"), patch(19, "x"), patch(48, "x"),
		right[:len(right)-1], append(bytes.Repeat([]byte{255}, 3), right...),
	} {
		for _, record := range [][]byte{bad, append(bytes.Clone(right), bad...)} {
			require.Error(t, ks.ApplyRecord(record, t0), "%d: %x", i, record)
		}
	}
	require.Error(t, ks.ApplyRecord(nil, t0))
	require.Equal(t, before, all(ks))
}

// TestRecordsAreAppliedAtOnce has readers look up two keys of every record, for records of few and
// of very many keys.
func TestRecordsAreAppliedAtOnce(t *testing.T) {
	for _, n := range []int{2, 5000} {
		ks, _, _ := open(t, keyspace.Options{})
		first, last := key(0), key(n-1)
		record := func(value string) []byte {
			var r effect.Record
			for i := range n {
				r.Put(0, key(i), &entry.Entry{Kind: entry.String, Expiry: entry.NoExpiry, Value: []byte(value)})
			}
			b, _ := r.Parts()
			return b
		}
		done := make(chan struct{})
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				v := ks.NewHandle()
				defer v.Close()
				refs := []keyspace.Ref{{Key: first}, {Key: last}}
				for {
					select {
					case <-done:
						return
					default:
					}
					v.Lock(refs)
					a, _ := v.Load(0, first)
					b, _ := v.Load(0, last)
					v.Unlock()
					if !bytes.Equal(a.Value, b.Value) {
						t.Errorf("half of a record: %q and %q", a.Value, b.Value)
						return
					}
				}
			})
		}
		for i := range 30 {
			require.NoError(t, ks.ApplyRecord(record(fmt.Sprint(i)), t0))
		}
		close(done)
		wg.Wait()
		require.Equal(t, n, ks.Stats().Databases[0].Keys)
	}
}

// cellRecord returns the record of one CL.THROTTLE.
func cellRecord(t testing.TB) []byte {
	return recordOf(t, func(v *keyspace.Handle) {
		_, err := asks.Throttle(v, 0, []byte("user:1234567890"), quota(t), 1)
		require.NoError(t, err)
	})
}

func TestApplyingOneEffectAllocatesNothing(t *testing.T) {
	if effort.RaceDetector {
		t.Skip("the race detector allocates")
	}
	ks, _, _ := open(t, keyspace.Options{})
	record := cellRecord(t)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if err := ks.ApplyRecord(record, t0); err != nil {
			t.Error(err)
		}
	}))
}

// BenchmarkApplyRecord applies the effect of a CL.THROTTLE to a key that exists, and
// transactions of ten.
func BenchmarkApplyRecord(b *testing.B) {
	one := cellRecord(b)
	ten := recordOf(b, func(v *keyspace.Handle) {
		for i := range 10 {
			_, err := asks.Throttle(v, 0, key(i), quota(b), 1)
			require.NoError(b, err)
		}
	})
	for name, record := range map[string][]byte{"effects=1": one, "effects=10": ten} {
		b.Run(name, func(b *testing.B) {
			ks, _, _ := open(b, keyspace.Options{})
			b.ReportAllocs()
			for b.Loop() {
				if err := ks.ApplyRecord(record, t0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// FuzzApplyRecord applies arbitrary records to a keyspace that has keys. A refused record has
// changed nothing.
func FuzzApplyRecord(f *testing.F) {
	_, v, j, _ := journalled(f)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 60 {
		transact(f, v, rng)
	}
	for _, r := range j.records {
		f.Add(r)
		f.Add(r[:len(r)-len(r)/3])
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		ks := keyspace.New(keyspace.Options{Clock: clocktest.New(t0), Shards: 2, Databases: 2})
		defer ks.Close()
		v := ks.NewHandle()
		fillKinds(t, v)
		before := all(ks)
		ks.SweepTo(limit.MinInstant)
		if ks.ApplyRecord(record, t0) != nil {
			require.Equal(t, before, all(ks))
		}
		require.Less(t, ks.Stats().Memory, int64(len(record))*64*200+(4<<20))
	})
}
