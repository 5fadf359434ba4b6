package keyspace_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/asks"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// clauses returns one limit of each kind: 16 cells, 10 units per minute, 10 tokens.
func clauses(t testing.TB, cells, units, tokens int64) []decide.Clause {
	return []decide.Clause{
		{Key: []byte("cl"), Quota: quota(t), Quantity: cells},
		{Key: []byte("sw"), Window: windowIn(slidingwindow.Fixed, units)},
		{Key: []byte("tb"), Bucket: bucket(tokenbucket.Greedy, tokens)},
	}
}

func multi(t testing.TB, v *keyspace.Handle, c []decide.Clause) (bool, []limit.Decision) {
	details := make([]limit.Decision, len(c))
	refused, err := asks.Multi(v, 0, c, details)
	require.NoError(t, err)
	return refused, details
}

func TestMultiIsAllOrNothing(t *testing.T) {
	overStorages(t, func(t *testing.T, o keyspace.Options) {
		_, v, _ := open(t, o)
		refused, details := multi(t, v, clauses(t, 1, 2, 3))
		require.False(t, refused)
		require.Equal(t, int64(15), details[0].Remaining)
		require.Equal(t, int64(8), details[1].Remaining)
		require.Equal(t, int64(7), details[2].Remaining)

		for _, c := range [][]decide.Clause{clauses(t, 16, 1, 1), clauses(t, 1, 9, 1), clauses(t, 1, 1, 8)} {
			refused, details = multi(t, v, c)
			require.True(t, refused)
			n := 0
			for i := range details {
				n += int(details[i].Refused)
			}
			require.Equal(t, 1, n, "the others would have passed")
			require.Equal(t, int64(15), details[0].Remaining, "as a peek answers")
			require.Equal(t, int64(8), details[1].Remaining)
			require.Equal(t, int64(7), details[2].Remaining)
			require.Equal(t, 2*time.Second, details[0].ResetAfter)
		}
		refused, _ = multi(t, v, clauses(t, 15, 8, 7))
		require.False(t, refused, "nothing was consumed meanwhile")
	})
}

func TestMultiPeeks(t *testing.T) {
	_, v, _ := open(t, keyspace.Options{})
	c := clauses(t, 1, 2, 3)
	for i := range c {
		c[i].Peek = true
	}
	refused, details := multi(t, v, c)
	require.False(t, refused)
	require.Equal(t, int64(16), details[0].Remaining)
	require.Equal(t, int64(10), details[1].Remaining)
	require.Equal(t, int64(10), details[2].Remaining)
	require.Zero(t, v.Len(0))
	require.Equal(t, slidingwindow.Whole, c[1].Window.Charge, "the caller's calls are as they were")
	require.Equal(t, tokenbucket.Whole, c[2].Bucket.Charge)
}

func TestMultiDeniedStoresWhatADenialStores(t *testing.T) {
	_, v, _ := open(t, keyspace.Options{})
	c := clauses(t, 17, 1, 1)
	c[2].Bucket.Init = 4
	refused, details := multi(t, v, c)
	require.True(t, refused)
	require.Equal(t, int64(4), details[2].Remaining)
	require.Equal(t, 1, v.Len(0), "the key with INIT")
	require.True(t, v.Exists(0, []byte("tb")))
	require.False(t, c[2].Bucket.Denied)

	_, err := asks.Acquire(v, 0, []byte("tb"), bucket(tokenbucket.Greedy, 4))
	require.NoError(t, err)
	c[2].Bucket.Interval, c[2].Bucket.Count = time.Second/2, 2
	refused, _ = multi(t, v, c)
	require.True(t, refused)
	at, _, _ := v.Expiry(0, []byte("tb"))
	require.Equal(t, t0.Add(5*time.Second).Add(time.Hour), at, "ten tokens of debt at the new rate, and what INIT adds")
}

// TestMultiWithALease: the lease of a refused call is not stored, and a member that holds a lease
// refreshes it.
func TestMultiWithALease(t *testing.T) {
	_, v, c := open(t, keyspace.Options{})
	call := func(cells int64, member string) (bool, []limit.Decision) {
		lease := &concurrency.Call{Member: []byte(member), Limit: 2, Lease: time.Minute}
		return multi(t, v, append(clauses(t, cells, 1, 1), decide.Clause{Key: []byte("cc"), Lease: lease}))
	}
	refused, _ := call(17, "a")
	require.True(t, refused)
	require.Zero(t, v.Len(0))
	for _, member := range []string{"a", "b"} {
		refused, _ = call(1, member)
		require.False(t, refused)
	}
	c.Advance(10 * time.Second)
	v.Refresh()
	refused, details := call(1, "c")
	require.True(t, refused)
	require.Equal(t, limit.Decision{Refused: 1, Limit: 2, RetryAfter: 50 * time.Second, ResetAfter: 50 * time.Second}, details[3])
	refused, details = call(1, "b")
	require.False(t, refused)
	require.Equal(t, limit.Decision{Limit: 2, RetryAfter: limit.NoRetry, ResetAfter: time.Minute}, details[3])
}

// TestMultiInPart: every clause grants as much as the clause with the least room.
func TestMultiInPart(t *testing.T) {
	_, v, _ := open(t, keyspace.Options{})
	for _, left := range []int64{4, 0, 0} {
		a := &decide.Ask{Family: decide.Several, Partial: true, Clauses: clauses(t, 6, 6, 6), Details: make([]limit.Decision, 3)}
		v.Decide(a)
		require.NoError(t, a.Err)
		require.Equal(t, left, a.Details[1].Remaining)
		require.Equal(t, left, a.Details[2].Remaining)
	}
	d, err := asks.Throttle(v, 0, []byte("cl"), clauses(t, 0, 0, 0)[0].Quota, 0)
	require.NoError(t, err)
	require.Equal(t, int64(6), d.Remaining, "10 of 16, as of the others")
}

func TestMultiErrorsStoreNothing(t *testing.T) {
	ks, v, _ := open(t, keyspace.Options{})
	details := make([]limit.Decision, 3)
	require.NoError(t, v.Put(0, []byte("tb"), entry.String, []byte("x"), entry.NoExpiry))
	_, err := asks.Multi(v, 0, clauses(t, 1, 1, 1), details)
	require.ErrorIs(t, err, limit.ErrWrongType)
	require.Equal(t, 1, v.Len(0))
	v.FlushAll()

	require.NoError(t, v.Put(0, []byte("cl"), entry.String, []byte("x"), entry.NoExpiry))
	_, err = asks.Multi(v, 0, clauses(t, 1, 1, 1), details)
	require.ErrorIs(t, err, limit.ErrNotInteger)
	require.Equal(t, 1, v.Len(0))
	require.NoError(t, v.Put(0, []byte("cl"), entry.String, []byte("1"), entry.NoExpiry))

	ks.SetMaxMemory(1)
	_, err = asks.Multi(v, 0, clauses(t, 1, 1, 1), details)
	require.ErrorIs(t, err, limit.ErrFull)
	require.Equal(t, entry.String, v.Kind(0, []byte("cl")))
	ks.SetMaxMemory(0)
	refused, _ := multi(t, v, clauses(t, 1, 1, 1))
	require.False(t, refused)
	ks.SetMaxMemory(1)
	refused, _ = multi(t, v, clauses(t, 1, 1, 1))
	require.False(t, refused, "keys that exist go on")
}

func TestMultiOnLockedKeysUsesTheirInstant(t *testing.T) {
	_, v, c := open(t, keyspace.Options{})
	v.Lock(refs("cl", "sw", "tb"))
	c.Advance(time.Hour)
	refused, _ := multi(t, v, clauses(t, 1, 1, 1))
	require.False(t, refused)
	at, _, _ := v.Expiry(0, []byte("cl"))
	require.Equal(t, t0.Add(2*time.Second), at, "at the instant of the Hold")
	v.Unlock()
	refused, _ = multi(t, v, clauses(t, 1, 1, 1))
	require.False(t, refused)
}
