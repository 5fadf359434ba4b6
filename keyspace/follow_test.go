package keyspace_test

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/waiting"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/shared"
)

// countedTape is a journal that counts.
type countedTape struct{ n atomic.Int64 }

// Append implements keyspace.Journal.
func (j *countedTape) Append(_ []byte, refs []shared.Ref, _ limit.Instant) uint64 {
	shared.ReleaseAll(refs)
	return uint64(j.n.Add(1))
}

// Refuses implements keyspace.Journal.
func (j *countedTape) Refuses() bool { return false }

// TestAloneNobodyElseRuns has several goroutines run batches while others call Alone.
func TestAloneNobodyElseRuns(t *testing.T) {
	ks, _, _ := open(t, keyspace.Options{})
	var inside, alone atomic.Int32
	var turns int // guarded by Alone
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			v := ks.NewHandle()
			defer v.Close()
			for range 500 {
				if !v.Enter() {
					started := make(chan struct{})
					ks.World().NotifyStart(func() { close(started) })
					<-started
					continue
				}
				inside.Add(1)
				if alone.Load() != 0 {
					t.Error("a batch runs beside who is alone")
				}
				inside.Add(-1)
				v.Leave()
			}
		})
		wg.Go(func() {
			for range 100 {
				ks.Exclusively(func() {
					if alone.Add(1) != 1 || inside.Load() != 0 {
						t.Error("somebody else runs")
					}
					turns++
					alone.Add(-1)
				})
			}
		})
	}
	wg.Wait()
	require.Equal(t, 300, turns)
}

func TestEmptyLeavesNothingAndIsNotRecorded(t *testing.T) {
	ks, v, j, _ := journalled(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		require.NoError(t, operateOnAny(v, rng))
	}
	require.NoError(t, v.Put(1, []byte("watched"), entry.String, nil, entry.NoExpiry))
	require.NoError(t, v.Put(1, []byte("waited for"), entry.String, nil, entry.NoExpiry))
	var w keyspace.Watcher
	v.Watch(&w, 1, []byte("watched"))
	woken := 0
	v.Enqueue(1, []byte("waited for"), &waiting.Waiter{Wake: func() { woken++ }})
	log := &changeLog{}
	ks.ObserveSweep(log)
	ks.StartObserving()
	records := len(j.records)
	ks.Exclusively(ks.Empty)
	require.Empty(t, all(ks))
	require.Zero(t, v.Len(0)+v.Len(1))
	require.Zero(t, ks.Stats().Kinds)
	require.Len(t, j.records, records)
	require.True(t, v.Dirty(&w))
	require.Equal(t, 1, woken)
	require.Equal(t, []string{"flushed", "released"}, log.told)
}

// TestResetInstants sets the time back, as the end of a full resynchronization may.
func TestResetInstants(t *testing.T) {
	ks, v, clock := open(t, keyspace.Options{})
	clock.Advance(time.Hour)
	require.Equal(t, t0.Add(time.Hour), v.Refresh())
	idle := ks.NewHandle()
	defer idle.Close()
	require.NoError(t, v.Put(0, []byte("k"), entry.String, nil, entry.NoExpiry))
	v.LockAll()
	v.Unlock()
	ks.Exclusively(func() {
		clock.Advance(-time.Hour)
		ks.ResetInstants(t0)
	})
	require.Equal(t, t0, v.Refresh())
	require.True(t, v.Exists(0, []byte("k")))
	require.Equal(t, t0, v.Now())
	idle.LockAll()
	require.Equal(t, t0, idle.Now(), "also one in no batch")
	idle.Unlock()
	clock.Advance(time.Second)
	require.Equal(t, t0.Add(time.Second), v.Refresh(), "and goes on")
}

// TestSetJournalAtRunTime changes the journal while several goroutines work: every change is
// recorded in the journal that was set at the time, and in no other.
func TestSetJournalAtRunTime(t *testing.T) {
	ks, _, _ := open(t, keyspace.Options{})
	const workers, rounds = 4, 400
	var wg sync.WaitGroup
	var made [workers]int64
	var settled atomic.Bool // the final journal is set
	for n := range workers {
		wg.Go(func() {
			v := ks.NewHandle()
			defer v.Close()
			for i, last := 0, false; i < rounds || !last; i++ { // at least one round has that journal
				last = settled.Load()
				for !v.Enter() {
					started := make(chan struct{})
					ks.World().NotifyStart(func() { close(started) })
					<-started
				}
				v.Refresh()
				before := v.Effects()
				if err := v.Put(0, []byte{byte(n)}, entry.String, []byte("v"), entry.NoExpiry); err != nil {
					t.Error(err)
				}
				v.LockAll()
				if err := v.Put(0, []byte{byte(n)}, entry.String, []byte("w"), entry.NoExpiry); err != nil {
					t.Error(err)
				}
				v.Unlock()
				made[n] += int64(v.Effects() - before)
				v.TakePosition()
				v.Leave()
			}
		})
	}
	var tapes []*countedTape
	for i := range 50 {
		ks.Exclusively(func() {
			if i%3 == 0 {
				ks.SetJournal(nil)
				return
			}
			tapes = append(tapes, &countedTape{})
			ks.SetJournal(tapes[len(tapes)-1])
		})
		ks.Sweep(10)
	}
	settled.Store(true)
	wg.Wait()
	var sum, kept int64
	for _, n := range made {
		sum += n
	}
	for _, j := range tapes {
		kept += j.n.Load()
	}
	require.Equal(t, sum, kept)
	require.Positive(t, kept)
}

// TestSweepToKeepsWhatExpiresLater: commands do not find such a key, but it is still stored.
func TestSweepToKeepsWhatExpiresLater(t *testing.T) {
	ks, v, clock := open(t, keyspace.Options{Shards: 1})
	log := &changeLog{}
	v.Observe(log)
	v.StartObserving()
	for i, name := range []string{"a", "b", "c"} {
		require.NoError(t, v.Put(0, []byte(name), entry.String, nil, t0.Add(time.Duration(i+1)*time.Second)))
	}
	ks.SweepTo(t0.Add(2 * time.Second))
	clock.Advance(time.Minute)
	v.Refresh()
	require.False(t, v.Exists(0, []byte("c")), "found expired, and not removed for that")
	require.Equal(t, 3, v.Len(0))
	require.Equal(t, 2, ks.Sweep(1000).Removed)
	require.Equal(t, 1, v.Len(0))
	require.False(t, v.Exists(0, []byte("c")))
	var seen []string
	require.NoError(t, ks.Snapshot(func(_ int, key []byte, _ entry.Entry) { seen = append(seen, string(key)) }, func() error { return nil }))
	require.Equal(t, []string{"c"}, seen, "what may be prolonged is copied")
	ks.SweepTo(limit.MaxInstant)
	require.Equal(t, 1, ks.Sweep(1000).Removed)
	require.Zero(t, v.Len(0))
}

// TestStepsAreShortAndSeeAll takes two snapshots of small and large keys, alternately.
func TestStepsAreShortAndSeeAll(t *testing.T) {
	ks, v, _ := open(t, keyspace.Options{Shards: 4, Databases: 3})
	for i := range 3000 {
		require.NoError(t, v.Put(i%2*2, key(i), entry.String, key(i), entry.NoExpiry))
	}
	for i := range 20 {
		require.NoError(t, v.WriteList(2, append(key(i), 'l'), func(l *collection.List) error {
			for range 200 {
				require.NoError(t, l.PushBack(bytes.Repeat([]byte{'x'}, 100)))
			}
			return nil
		}))
	}
	var step int
	seen := [2]map[string]bool{{}, {}}
	var w [2]*keyspace.Steps
	for i := range w {
		w[i] = ks.Steps(func(db int, key []byte, e entry.Entry) {
			step++
			if e.Kind == entry.List {
				step += 1000
			}
			seen[i][string(rune('0'+db))+string(key)] = true
		})
		defer w[i].Close()
	}
	for more := true; more; {
		more = false
		for i := range w {
			step = 0
			_, goesOn, err := w[i].Next(true)
			require.NoError(t, err)
			require.True(t, step <= 200 || step == 1001, "%d", step)
			more = more || goesOn
		}
	}
	require.Len(t, seen[0], 3020)
	require.Equal(t, seen[0], seen[1])
	given := ks.Steps(func(int, []byte, entry.Entry) {})
	_, _, err := given.Next(true)
	require.NoError(t, err)
	given.Close()
	_, more, err := given.Next(true)
	require.NoError(t, err)
	require.False(t, more)
}

// TestStepsThatWaitForNobody: while a command holds all keys the steps do nothing; afterwards they
// copy everything.
func TestStepsThatWaitForNobody(t *testing.T) {
	ks, v, _ := open(t, keyspace.Options{Shards: 4})
	keys := numbered("k", manyReads)
	set(t, v, keys, "v")
	require.NoError(t, v.WriteList(0, []byte("list"), func(l *collection.List) error {
		return l.PushBack(bytes.Repeat([]byte{'x'}, 100_000))
	}))
	seen := map[string]bool{}
	w := ks.Steps(func(_ int, key []byte, _ entry.Entry) { seen[string(key)] = true })
	defer w.Close()
	tried := 0
	v.EachString(0, keys, func([]byte, bool) bool {
		for ; tried < 20; tried++ {
			done, more, err := w.Next(false)
			require.NoError(t, err)
			require.False(t, done)
			require.True(t, more)
		}
		return true
	})
	require.Equal(t, 20, tried)
	require.Empty(t, seen)
	for more := true; more; {
		var done bool
		var err error
		done, more, err = w.Next(false)
		require.NoError(t, err)
		require.True(t, done)
	}
	require.Len(t, seen, manyReads+1)
}
