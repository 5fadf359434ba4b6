package keyspace_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/internal/asks"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/shared"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// tape is a journal in memory.
type tape struct {
	records [][]byte
	latest  limit.Instant
	refuses bool
	blind   bool // keeps nothing, for measuring allocations
}

// Append implements keyspace.Journal.
func (j *tape) Append(record []byte, refs []shared.Ref, at limit.Instant) uint64 {
	j.latest = max(j.latest, at)
	if !j.blind {
		var all []byte
		from := 0
		for i := range refs {
			all = append(append(all, record[from:refs[i].At]...), refs[i].Bytes...)
			from = refs[i].At
		}
		j.records = append(j.records, append(all, record[from:]...))
	}
	shared.ReleaseAll(refs)
	return uint64(len(j.records)) + 1
}

// Refuses implements keyspace.Journal.
func (j *tape) Refuses() bool { return j.refuses }

func (j *tape) replay(t *testing.T, ks *keyspace.Keyspace, from int) {
	for _, r := range j.records[from:] {
		for len(r) > 0 {
			e, rest, err := effect.Next(r)
			require.NoError(t, err)
			require.NoError(t, ks.Apply(e))
			r = rest
		}
	}
}

type entries map[string]entry.Entry

func all(ks *keyspace.Keyspace) entries {
	m := entries{}
	_ = ks.Snapshot(func(db int, key []byte, e entry.Entry) {
		e.Value = append([]byte{}, e.Value...)
		m[string(rune('0'+db))+string(key)] = e
	}, func() error { return nil })
	return m
}

func journalled(t testing.TB) (*keyspace.Keyspace, *keyspace.Handle, *tape, *clocktest.Clock) {
	clock := clocktest.New(1_700_000_000_000_000_000)
	ks := keyspace.New(keyspace.Options{Clock: clock, Shards: 4, Databases: 2})
	t.Cleanup(ks.Close)
	j := &tape{}
	ks.SetJournal(j)
	return ks, ks.NewHandle(), j, clock
}

// operate does one random operation on one of few keys.
func operate(v *keyspace.Handle, rng *rand.Rand) {
	key := []byte{byte('a' + rng.IntN(6))}
	db := rng.IntN(2)
	quota, _ := gcra.NewQuota(3, 5, 60)
	n := int64(rng.IntN(3))
	switch rng.IntN(12) {
	case 0, 1:
		_, _ = asks.Throttle(v, db, key, &quota, n)
	case 2, 3:
		c := windowIn(slidingwindow.Counter+slidingwindow.Mode(rng.IntN(5)), n-1)
		c.Limit = 20
		_, _ = asks.Allow(v, db, append(key, 'w'), c)
	case 4, 5:
		_, _ = asks.Lease(v, db, append(key, 'l'), &concurrency.Call{Op: concurrency.Acquire, Limit: 20, Lease: time.Minute, Member: []byte{byte(rng.IntN(30))}})
	case 6:
		v.Delete(db, key)
	case 7:
		v.Rename(db, key, []byte{byte('a' + rng.IntN(6))}, false)
	case 8:
		v.Expire(db, key, v.Now().Add(time.Minute), 0)
	case 9:
		_ = v.Put(db, key, entry.String, []byte("12345"), entry.NoExpiry)
	case 10:
		v.Persist(db, key)
	case 11:
		if rng.IntN(20) == 0 {
			v.Flush(db)
		}
	}
}

// Replaying all effects gives the same state, and so does replaying the effects since the beginning
// of a snapshot over the snapshot, however the two interleave.
func TestEffectsReplay(t *testing.T) {
	for seed := range uint64(30) {
		ks, v, j, clock := journalled(t)
		rng := rand.New(rand.NewPCG(seed, 9))
		for range 200 {
			clock.Advance(time.Duration(rng.IntN(1e9)))
			v.Refresh()
			operate(v, rng)
		}
		copied := keyspace.New(keyspace.Options{Clock: clock, Shards: 8, Databases: 2})
		since := len(j.records)
		err := ks.Snapshot(func(db int, key []byte, e entry.Entry) {
			require.NoError(t, copied.Restore(db, key, e))
		}, func() error {
			for range rng.IntN(8) {
				operate(v, rng)
			}
			return nil
		})
		require.NoError(t, err)
		j.replay(t, copied, since)
		require.Equal(t, all(ks), all(copied), "seed %d", seed)
		fresh := keyspace.New(keyspace.Options{Clock: clock, Shards: 8, Databases: 2})
		j.replay(t, fresh, 0)
		require.Equal(t, all(ks), all(fresh), "seed %d", seed)
		copied.Close()
		fresh.Close()
	}
}

// One command is one record, and so is all that happens between Lock and Unlock.
func TestOneRecordForOneCommand(t *testing.T) {
	_, v, j, _ := journalled(t)
	quota, err := gcra.NewQuota(3, 5, 60)
	require.NoError(t, err)
	require.Zero(t, v.TakePosition())
	_, err = asks.Throttle(v, 0, []byte("a"), &quota, 0)
	require.NoError(t, err)
	require.Empty(t, j.records, "a peek has no effect")
	v.Lock([]keyspace.Ref{{Key: []byte("a")}, {Key: []byte("b")}})
	_, err = asks.Throttle(v, 0, []byte("a"), &quota, 1)
	require.NoError(t, err)
	_, err = asks.Throttle(v, 0, []byte("b"), &quota, 1)
	require.NoError(t, err)
	require.Empty(t, j.records)
	v.Unlock()
	require.Len(t, j.records, 1)
	require.NotZero(t, v.TakePosition())
	require.Zero(t, v.TakePosition())
	v.Rename(0, []byte("a"), []byte("c"), false)
	require.Len(t, j.records, 2)
	v.FlushAll()
	require.Len(t, j.records, 3)
}

// While the journal refuses, a command with an effect is an error and changes nothing; a command
// that only reads is answered.
func TestWritesAreRefusedWhileTheJournalRefuses(t *testing.T) {
	ks, v, j, _ := journalled(t)
	quota, err := gcra.NewQuota(3, 5, 60)
	require.NoError(t, err)
	_, err = asks.Throttle(v, 0, []byte("a"), &quota, 1)
	require.NoError(t, err)
	before := all(ks)
	j.refuses = true
	require.True(t, v.Refuses())
	_, err = asks.Throttle(v, 0, []byte("a"), &quota, 1)
	require.ErrorIs(t, err, limit.ErrNotKept)
	d, err := asks.Throttle(v, 0, []byte("a"), &quota, 0)
	require.NoError(t, err)
	require.Equal(t, int64(3), d.Remaining)
	_, err = asks.Allow(v, 0, []byte("w"), &slidingwindow.Call{Mode: slidingwindow.Counter, Limit: 5, Window: time.Minute, Quantity: 1})
	require.ErrorIs(t, err, limit.ErrNotKept)
	_, err = asks.Lease(v, 0, []byte("l"), &concurrency.Call{Op: concurrency.Acquire, Limit: 5, Lease: time.Minute, Member: []byte("m")})
	require.ErrorIs(t, err, limit.ErrNotKept)
	_, err = asks.Acquire(v, 0, []byte("t"), &tokenbucket.Call{Mode: tokenbucket.Greedy, Capacity: 5, Init: 5, Count: 1, Period: time.Second, Interval: time.Second, Quantity: 1})
	require.ErrorIs(t, err, limit.ErrNotKept)
	_, err = asks.Multi(v, 0, []decide.Clause{{Key: []byte("a"), Quota: &quota, Quantity: 1}}, make([]limit.Decision, 1))
	require.ErrorIs(t, err, limit.ErrNotKept)
	require.Equal(t, before, all(ks))
	j.refuses = false
	_, err = asks.Throttle(v, 0, []byte("a"), &quota, 1)
	require.NoError(t, err)
}

// A command that has begun before the journal refuses comes to its end: half of a transaction or
// script would be worse than all of it, which is one record, kept or lost.
func TestTransactionsEndAlthoughTheJournalRefuses(t *testing.T) {
	_, v, j, _ := journalled(t)
	put := func(key string) error {
		_, err := v.SetString(0, []byte(key), []byte("v"), keyspace.SetOptions{Expiry: entry.NoExpiry})
		return err
	}
	v.LockAll()
	require.NoError(t, put("a"))
	j.refuses = true
	require.False(t, v.Refuses())
	require.NoError(t, put("b"))
	v.Unlock()
	require.Len(t, j.records, 1)
	require.True(t, v.Refuses())
	v.LockAll()
	require.ErrorIs(t, put("c"), limit.ErrNotKept)
	j.refuses = false // too late for the present locks
	require.ErrorIs(t, put("d"), limit.ErrNotKept)
	v.Unlock()
	require.Len(t, j.records, 1)
	require.NoError(t, put("e"))
}

// Recording allocates nothing.
func TestRecordingAllocatesNothing(t *testing.T) {
	_, v, j, _ := journalled(t)
	j.blind = true
	quota, err := gcra.NewQuota(1<<40, 1000, 1)
	require.NoError(t, err)
	a := &decide.Ask{Key: []byte("user:1234567890"), Family: decide.Cell, Quota: quota, Quantity: 1}
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		v.Decide(a)
		_ = v.TakePosition()
	}))
}

// A transaction with large effects is refused further ones long before its record is larger than a
// file allows.
func TestEffectsOfATransactionAreBounded(t *testing.T) {
	effort.Alone(t)
	ks, v, j, _ := journalled(t)
	value := make([]byte, 1<<20)
	key := func(i int) []byte { return []byte{'k', byte(i)} }
	v.LockAll()
	defer v.Unlock()
	puts := 0
	for ; !v.Refuses(); puts++ {
		require.Less(t, puts, 100)
		require.NoError(t, v.Put(0, key(puts), entry.String, value, entry.NoExpiry))
	}
	_, err := asks.Lease(v, 0, key(0), &concurrency.Call{Op: concurrency.Acquire, Limit: 20, Lease: time.Minute, Member: []byte("m")})
	require.ErrorIs(t, err, limit.ErrWrongType)
	_, err = asks.Lease(v, 0, []byte("l"), &concurrency.Call{Op: concurrency.Acquire, Limit: 20, Lease: time.Minute, Member: []byte("m")})
	require.ErrorIs(t, err, limit.ErrNotKept)
	v.Unlock()
	require.Len(t, j.records, 1)
	require.Greater(t, v.Unsettled(), 64<<20)
	require.Less(t, v.Unsettled(), 66<<20)
	require.False(t, v.Refuses(), "the next may begin")
	v.TakePosition()
	require.Zero(t, v.Unsettled())
	again := keyspace.New(keyspace.Options{Clock: ks.Clock(), Shards: 4, Databases: 2})
	defer again.Close()
	j.replay(t, again, 0)
	require.Equal(t, all(ks), all(again))
}
