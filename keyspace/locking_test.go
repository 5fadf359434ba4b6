package keyspace_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/asks"
	"github.com/cellserver/cellserver/keyspace"
)

func refs(keys ...string) (r []keyspace.Ref) {
	for _, k := range keys {
		r = append(r, keyspace.Ref{Key: []byte(k)})
	}
	return r
}

func TestLockedKeysShareOneInstant(t *testing.T) {
	ks, v, c := open(t, keyspace.Options{})
	late := ks.NewHandle()
	c.Advance(time.Second)
	late.Refresh()
	_, err := asks.Throttle(late, 0, []byte("b"), quota(t), 1)
	require.NoError(t, err)

	require.Equal(t, t0, v.Now())
	v.Lock(refs("a", "b"))
	require.Equal(t, t0.Add(time.Second), v.Now(), "the latest instant of the shards")
	c.Advance(time.Hour)
	require.Equal(t, t0.Add(time.Second), v.Refresh(), "there is only one")
	require.True(t, v.Exists(0, []byte("b")))
	_, err = asks.Throttle(v, 0, []byte("a"), quota(t), 1)
	require.NoError(t, err)
	at, _, _ := v.Expiry(0, []byte("a"))
	require.Equal(t, t0.Add(3*time.Second), at)
	v.Unlock()
	v.Unlock() // has no effect, since nothing is locked
	require.Equal(t, t0.Add(time.Second+time.Hour), v.Refresh())
	require.False(t, v.Exists(0, []byte("b")))
}

// TestEachLockHasAnInstantOfItsOwn locks keys twice in one batch, at two instants.
func TestEachLockHasAnInstantOfItsOwn(t *testing.T) {
	ks, v, c := open(t, keyspace.Options{})
	other := ks.NewHandle()
	for i, lock := range []func(){func() { v.Lock(refs("a")) }, v.LockAll} {
		c.Advance(time.Microsecond)
		lock()
		now, at := v.Now(), t0.Add(time.Duration(i+1)*time.Microsecond)
		v.Unlock()
		require.Equal(t, at, now)
		require.NoError(t, other.Put(0, []byte("a"), entry.String, []byte("v"), t0.Add(time.Hour)))
		require.Equal(t, at, other.Now(), "no other handle is earlier")
	}
}

func TestInstantsNeverStepBack(t *testing.T) {
	ks, v, c := open(t, keyspace.Options{})
	ahead := ks.NewHandle()
	c.Advance(10 * time.Second)
	ahead.Refresh()
	require.NoError(t, ahead.Put(0, []byte("k"), entry.String, []byte("v"), t0.Add(11*time.Second)))
	// v's batch began earlier, but its command on k happens later.
	_, err := asks.Throttle(v, 0, []byte("k2"), quota(t), 1)
	require.NoError(t, err)
	require.True(t, v.Exists(0, []byte("k")))
	require.Equal(t, t0.Add(10*time.Second), v.Now())
	c.Set(t0) // a clock that goes back
	require.Equal(t, t0.Add(10*time.Second), v.Refresh())
}

func TestLockCoversOnlyItsKeys(t *testing.T) {
	_, v, _ := open(t, keyspace.Options{})
	v.Lock(refs("a"))
	require.Panics(t, func() { v.Lock(refs("b")) }, "a second Hold could wait for ever")
	require.Panics(t, func() {
		for i := range 1000 { // at least one of them is in another shard
			v.Exists(0, key(i))
		}
	})
	v.Unlock()
	v.LockAll()
	require.Zero(t, v.Len(0))
	v.FlushAll()
	v.Unlock()
	require.NoError(t, v.Put(0, []byte("a"), entry.String, nil, entry.NoExpiry), "no lock is left behind")
}

// TestTransfersKeepTheSum moves amounts between keys from many goroutines, while others read all
// keys. No reader sees half of a transfer, and there is no deadlock.
func TestTransfersKeepTheSum(t *testing.T) {
	overStorages(t, func(t *testing.T, o keyspace.Options) {
		const accounts, each, goroutines, moves = 10, 100, 8, 1500
		ks, v, _ := open(t, o)
		put := func(v *keyspace.Handle, i, n int) {
			if err := v.Put(0, key(i), entry.String, strconv.AppendInt(nil, int64(n), 10), entry.NoExpiry); err != nil {
				t.Error(err)
			}
		}
		get := func(v *keyspace.Handle, i int) int {
			b, _, err := v.AppendString(nil, 0, key(i))
			n, err2 := strconv.Atoi(string(b))
			if err != nil || err2 != nil {
				t.Error(err, err2)
			}
			return n
		}
		var all []keyspace.Ref
		for i := range accounts {
			put(v, i, each)
			all = append(all, keyspace.Ref{Key: key(i)})
		}
		var wg sync.WaitGroup
		for n := range goroutines {
			wg.Go(func() {
				v, rng := ks.NewHandle(), rand.New(rand.NewPCG(uint64(n), 0))
				for range moves {
					from, to := rng.IntN(accounts), rng.IntN(accounts)
					if from == to {
						continue
					}
					v.Lock([]keyspace.Ref{{Key: key(from)}, {Key: key(to)}})
					put(v, from, get(v, from)-1)
					put(v, to, get(v, to)+1)
					v.Unlock()
					if from == 0 {
						v.Lock(all)
						sum := 0
						for i := range accounts {
							sum += get(v, i)
						}
						v.Unlock()
						if sum != accounts*each {
							t.Error(fmt.Sprint("sum ", sum))
						}
					}
				}
			})
		}
		wg.Wait()
	})
}
