package keyspace_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/asks"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/shared"
	"github.com/cellserver/cellserver/slidingwindow"
)

// More keys than the commands lock, by kind of command: they claim them.
const (
	manyReads   = 9000
	manyWrites  = 3000
	manyClauses = 700
)

// within fails the test if do does not return, as in a deadlock.
func within(t *testing.T, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("somebody is kept waiting")
	}
}

// numbered returns n keys.
func numbered(prefix string, n int) (keys [][]byte) {
	for i := range n {
		keys = append(keys, fmt.Appendf(nil, "%s:%d", prefix, i))
	}
	return keys
}

// set stores value at all of keys.
func set(t testing.TB, v *keyspace.Handle, keys [][]byte, value string) {
	t.Helper()
	var pairs [][]byte
	for _, k := range keys {
		pairs = append(pairs, k, []byte(value))
	}
	done, err := v.SetStrings(0, pairs, false)
	require.NoError(t, err)
	require.True(t, done)
}

// values returns the distinct values of keys.
func values(v *keyspace.Handle, keys [][]byte) (seen []string) {
	v.EachString(0, keys, func(value []byte, found bool) bool {
		if is := fmt.Sprint(string(value), found); !slices.Contains(seen, is) {
			seen = append(seen, is)
		}
		return true
	})
	return seen
}

// TestOthersGoOnWhileACommandOfVeryManyKeysRuns stops such a command half-way: keys that it does
// not name can be read, changed and locked meanwhile.
func TestOthersGoOnWhileACommandOfVeryManyKeysRuns(t *testing.T) {
	ks, v, _ := open(t, keyspace.Options{})
	other := ks.NewHandle()
	keys := numbered("many", manyReads)
	// Only one shard is locked at a time, that of the key which is being read: of a hundred keys in
	// 64 shards most are in other shards.
	free, first := numbered("free", 100), shardOf(ks, keys[0])
	free = slices.DeleteFunc(free, func(k []byte) bool { return shardOf(ks, k) == first })
	once := false
	v.EachString(0, keys, func([]byte, bool) bool {
		if once {
			return true
		}
		once = true
		within(t, func() {
			set(t, other, free, "x")
			require.Equal(t, []string{"xtrue"}, values(other, free))
			for _, k := range free {
				require.True(t, other.Exists(0, k))
			}
			other.Lock([]keyspace.Ref{{Key: free[0]}, {Key: free[1]}})
			require.True(t, other.Delete(0, free[0]))
			other.Unlock()
			renamed, _ := other.Rename(0, free[1], free[2], false)
			require.True(t, renamed)
		})
		return true
	})
}

func shardOf(ks *keyspace.Keyspace, key []byte) int { return ks.ShardOf(key) }

// TestCommandsOfVeryManyKeysHaveOneInstant advances the clock half-way through such a command. The
// command sees the state of its beginning until its end, and the instants of other commands do not
// go back.
func TestCommandsOfVeryManyKeysHaveOneInstant(t *testing.T) {
	ks, v, c := open(t, keyspace.Options{})
	other := ks.NewHandle()
	keys, free := numbered("many", manyReads), numbered("free", 1000)
	for _, k := range keys {
		require.NoError(t, v.Put(0, k, entry.String, []byte("x"), t0.Add(time.Second)))
	}
	first := shardOf(ks, keys[0])
	free = slices.DeleteFunc(free, func(k []byte) bool { return shardOf(ks, k) == first })
	n := 0
	v.EachString(0, keys, func(_ []byte, found bool) bool {
		if n == 0 {
			c.Advance(time.Hour)
			other.Refresh()
			within(t, func() { set(t, other, free, "x") })
		}
		if found {
			n++
		}
		return true
	})
	require.Equal(t, len(keys), n)
	require.Equal(t, t0, v.Now())
	require.True(t, v.Exists(0, free[0]))
	require.Equal(t, t0.Add(time.Hour), v.Now(), "the shard is where it was")
	require.False(t, v.Exists(0, keys[1]) && shardOf(ks, keys[1]) != first)
}

// TestReadersWaitForClaimedKeys has many goroutines read keys, in every way, that
// commands of very many keys change. No reader sees half of a change.
func TestReadersWaitForClaimedKeys(t *testing.T) {
	ks, v, _ := open(t, keyspace.Options{Shards: 4})
	keys := numbered("many", manyWrites)
	more := slices.Concat(keys, numbered("more", manyReads))
	set(t, v, keys, "0")
	var rounds atomic.Int64 // that are finished
	check := func(what string, seen []string) {
		if len(seen) != 1 {
			t.Errorf("%s: %q", what, seen)
		}
	}
	looks := []func(v *keyspace.Handle){
		func(v *keyspace.Handle) { check("a few", values(v, [][]byte{keys[0], keys[1000], keys[2999]})) },
		func(v *keyspace.Handle) {
			if seen := values(v, more); len(seen) != 2 { // the values, and empty for keys that do not exist
				t.Errorf("many: %q", seen)
			}
		},
		func(v *keyspace.Handle) {
			v.Lock([]keyspace.Ref{{Key: keys[7]}, {Key: keys[2000]}})
			defer v.Unlock()
			a, _, _ := v.AppendString(nil, 0, keys[7])
			b, _, _ := v.AppendString(nil, 0, keys[2000])
			check("held", slices.Compact([]string{string(a), string(b)}))
		},
		func(v *keyspace.Handle) {
			done := int(rounds.Load())
			a, _, _ := v.AppendString(nil, 0, keys[rand.IntN(len(keys))])
			b, _, _ := v.AppendString(nil, 0, keys[rand.IntN(len(keys))])
			x, _ := strconv.Atoi(string(a))
			y, _ := strconv.Atoi(string(b))
			if x < done || y < x {
				t.Errorf("one after another: %d, %d, at least %d", x, y, done)
			}
		},
		func(v *keyspace.Handle) {
			seen := map[string]bool{}
			v.LockAll()
			defer v.Unlock()
			v.ScanEntries(0, 0, 10*manyWrites, func(_ []byte, e entry.Entry) { seen[string(e.Value)] = true })
			check("all", slices.Collect(maps.Keys(seen)))
		},
	}
	var wg sync.WaitGroup
	end := make(chan struct{})
	for _, look := range looks {
		wg.Go(func() {
			v := ks.NewHandle()
			for {
				select {
				case <-end:
					return
				default:
					look(v)
				}
			}
		})
	}
	for round := range 30 {
		set(t, v, keys, strconv.Itoa(round+1))
		rounds.Store(int64(round + 1))
	}
	close(end)
	wg.Wait()
}

// TestMultisOfVeryManyClausesNeverOverAdmit has several RL.MULTI charge the same limits: as many
// pass as the limits have room for, and each of them charges every limit.
func TestMultisOfVeryManyClausesNeverOverAdmit(t *testing.T) {
	const callers, each, most = 4, 8, 10
	ks, v, _ := open(t, keyspace.Options{})
	clauses := func(by int) (list []decide.Clause) {
		keys := numbered("window", manyClauses)
		if by%2 == 1 {
			slices.Reverse(keys)
		}
		for _, k := range keys {
			call := slidingwindow.Call{Limit: most, Window: time.Hour, Quantity: 1, Mode: slidingwindow.Log}
			list = append(list, decide.Clause{Key: k, Window: &call})
		}
		return list
	}
	var passed atomic.Int64
	var wg sync.WaitGroup
	for by := range callers {
		wg.Go(func() {
			v, list, details := ks.NewHandle(), clauses(by), make([]limit.Decision, manyClauses)
			for range each {
				refused, err := asks.Multi(v, 0, list, details)
				if err != nil {
					t.Error(err)
				}
				if !refused {
					passed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, most, passed.Load())
	list, details := clauses(0), make([]limit.Decision, manyClauses)
	for i := range list {
		list[i].Peek = true
	}
	_, err := asks.Multi(v, 0, list, details)
	require.NoError(t, err)
	for i := range details {
		require.Zero(t, details[i].Remaining, "clause %d", i)
	}
}

// TestClaimedKeysAreOneRecord shows that the effects of a command of very many keys are kept or
// lost as a whole, and that their record comes before those of the commands that waited for the
// keys.
func TestClaimedKeysAreOneRecord(t *testing.T) {
	ks, v, _ := open(t, keyspace.Options{})
	j := &tape{}
	ks.SetJournal(j)
	keys := numbered("many", manyWrites)
	set(t, v, keys, "x")
	require.Len(t, j.records, 1)
	require.NotZero(t, v.TakePosition())
	effects := 0
	for r := j.records[0]; len(r) > 0; effects++ {
		var err error
		_, r, err = effect.Next(r)
		require.NoError(t, err)
	}
	require.Equal(t, len(keys), effects)
	j.refuses = true
	_, err := v.SetStrings(0, append(slices.Clone(keys), keys...), false)
	require.ErrorIs(t, err, limit.ErrNotKept)
	require.Equal(t, []string{"xtrue"}, values(v, keys))
}

// TestClaimedKeysAreGivenUpAfterAPanic has a command of very many keys panic with a shard locked:
// afterwards nothing is locked or claimed.
func TestClaimedKeysAreGivenUpAfterAPanic(t *testing.T) {
	ks, v, _ := open(t, keyspace.Options{})
	keys := numbered("many", manyReads)
	require.Panics(t, func() {
		v.EachString(0, keys, func([]byte, bool) bool { panic("a fault") })
	})
	within(t, func() {
		other := ks.NewHandle()
		set(t, other, keys, "x")
		other.FlushAll()
		require.Zero(t, other.Len(0))
	})
}

// TestSweepLeavesClaimedKeys lets keys expire that a command claims: the sweep waits for the
// command.
func TestSweepLeavesClaimedKeys(t *testing.T) {
	ks, v, c := open(t, keyspace.Options{})
	keys := numbered("many", manyReads)
	for _, k := range keys {
		require.NoError(t, v.Put(0, k, entry.String, []byte("x"), t0.Add(time.Second)))
	}
	swept, n := make(chan struct{}), 0
	v.EachString(0, keys, func(_ []byte, found bool) bool {
		if n == 0 {
			c.Advance(time.Hour)
			go func() {
				defer close(swept)
				ks.Sweep(2 * manyReads)
			}()
		}
		if found {
			n++
		}
		return true
	})
	<-swept
	require.Equal(t, len(keys), n)
	require.Zero(t, v.Len(0))
}

// BenchmarkVeryManyKeys measures commands of very many keys in the keyspace.
func BenchmarkVeryManyKeys(b *testing.B) {
	_, v, _ := open(b, keyspace.Options{})
	keys := numbered("many", 30_000)
	var pairs [][]byte
	for _, k := range keys {
		pairs = append(pairs, k, []byte("x"))
	}
	b.Run("set", func(b *testing.B) {
		for b.Loop() {
			_, _ = v.SetStrings(0, pairs, false)
		}
	})
	b.Run("get", func(b *testing.B) {
		for b.Loop() {
			v.EachString(0, keys, func([]byte, bool) bool { return true })
		}
	})
	var list []decide.Clause
	for _, k := range numbered("window", 16_000) {
		call := slidingwindow.Call{Limit: 1_000_000, Window: time.Minute, Quantity: 1, Mode: slidingwindow.Counter}
		list = append(list, decide.Clause{Key: k, Window: &call})
	}
	details := make([]limit.Decision, len(list))
	b.Run("multi", func(b *testing.B) {
		for b.Loop() {
			_, _ = asks.Multi(v, 0, list, details)
		}
	})
}

// forgetful is a journal that keeps nothing. Any number of goroutines may use it without waiting.
type forgetful struct{}

// Append implements keyspace.Journal.
func (forgetful) Append(_ []byte, refs []shared.Ref, _ limit.Instant) uint64 {
	shared.ReleaseAll(refs)
	return 1
}

// Refuses implements keyspace.Journal.
func (forgetful) Refuses() bool { return false }

// TestRecordOfAClaimIsCondensedWithoutItsKeys: when the record of a command of very many keys is
// condensed no goroutine holds their shards, so that other commands may be changing their tables.
// The race detector fails the test if the condensing reads them.
func TestRecordOfAClaimIsCondensedWithoutItsKeys(t *testing.T) {
	ks, v, c := open(t, keyspace.Options{Shards: 1})
	ks.SetJournal(forgetful{})
	other := ks.NewHandle()
	call := slidingwindow.Call{Limit: 1_000_000, Window: time.Minute, Quantity: 1, Mode: slidingwindow.Counter}
	logged := call
	logged.Mode = slidingwindow.Log
	name := []byte(strings.Repeat("l", 30_000)) // patches of twenty clauses have the length from which a collection is looked at
	var list []decide.Clause
	for range 20 {
		list = append(list, decide.Clause{Key: name, Window: &logged})
	}
	for _, k := range numbered(strings.Repeat("k", 9000), manyClauses) {
		list = append(list, decide.Clause{Key: k, Window: &call})
	}
	details := make([]limit.Decision, len(list))
	for range 100 { // a log of this length is recorded by patches
		c.Advance(10 * time.Millisecond)
		v.Refresh()
		_, err := asks.Multi(v, 0, list[:1], details)
		require.NoError(t, err)
	}
	var others sync.WaitGroup
	var done atomic.Bool
	others.Go(func() {
		for i := 0; !done.Load(); i++ {
			set(t, other, numbered(fmt.Sprint("other:", i%50), 100), "x")
		}
	})
	for range 15 {
		c.Advance(time.Second)
		v.Refresh()
		refused, err := asks.Multi(v, 0, list, details)
		require.NoError(t, err)
		require.False(t, refused)
	}
	done.Store(true)
	others.Wait()
}
