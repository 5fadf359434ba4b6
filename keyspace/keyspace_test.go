package keyspace_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/internal/asks"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
)

// t0 is the initial time of the clocks of these tests.
const t0 = limit.Instant(1_700_000_000_000_000_000)

// open returns an empty keyspace with a stepped clock, and a handle of it.
func open(t testing.TB, o keyspace.Options) (*keyspace.Keyspace, *keyspace.Handle, *clocktest.Clock) {
	t.Helper()
	c := clocktest.New(t0)
	o.Clock = c
	ks := keyspace.New(o)
	t.Cleanup(ks.Close)
	v := ks.NewHandle()
	v.Refresh()
	return ks, v, c
}

// quota is max burst 15, 30 cells per 60 s: one cell takes 2 s.
func quota(t testing.TB) *gcra.Quota {
	q, err := gcra.NewQuota(15, 30, 60)
	require.NoError(t, err)
	return &q
}

func key(i int) []byte { return fmt.Appendf(nil, "key:%d", i) }

func TestThrottleKeepsTheTAT(t *testing.T) {
	_, v, c := open(t, keyspace.Options{})
	k := []byte("user123")
	d, err := asks.Throttle(v, 0, k, quota(t), 1)
	require.NoError(t, err)
	require.Equal(t, limit.Decision{Limit: 16, Remaining: 15, RetryAfter: limit.NoRetry, ResetAfter: 2 * time.Second}, d)

	got, found, err := v.AppendString(nil, 0, k)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, fmt.Sprint(int64(t0.Add(2*time.Second))), string(got))
	require.Equal(t, entry.Cell, v.Kind(0, k))
	require.False(t, v.Exists(1, k), "databases are apart")

	at, has, exists := v.Expiry(0, k)
	require.Equal(t, t0.Add(2*time.Second), at)
	require.True(t, has && exists)

	c.Advance(2*time.Second - 1)
	v.Refresh()
	require.True(t, v.Exists(0, k), "a key exists while its TAT is to come, to the nanosecond")
	c.Advance(1)
	v.Refresh()
	require.False(t, v.Exists(0, k))
}

func TestThrottleTakesStrings(t *testing.T) {
	_, v, _ := open(t, keyspace.Options{})
	tat := t0.Add(10 * time.Second)
	require.NoError(t, v.Put(0, []byte("n"), entry.String, fmt.Append(nil, int64(tat)), entry.NoExpiry))
	d, err := asks.Throttle(v, 0, []byte("n"), quota(t), 1)
	require.NoError(t, err)
	require.Equal(t, 12*time.Second, d.ResetAfter)
	require.Equal(t, entry.Cell, v.Kind(0, []byte("n")))
	at, _, _ := v.Expiry(0, []byte("n"))
	require.Equal(t, t0.Add(12*time.Second), at)

	require.NoError(t, v.Put(0, []byte("s"), entry.String, []byte("foo"), entry.NoExpiry))
	_, err = asks.Throttle(v, 0, []byte("s"), quota(t), 1)
	require.ErrorIs(t, err, limit.ErrNotInteger)
	require.NoError(t, v.Put(0, []byte("l"), entry.List, []byte("foo"), entry.NoExpiry))
	_, err = asks.Throttle(v, 0, []byte("l"), quota(t), 1)
	require.ErrorIs(t, err, limit.ErrWrongType)
	_, _, err = v.AppendString(nil, 0, []byte("l"))
	require.ErrorIs(t, err, limit.ErrWrongType)
}

func TestExpireOnACell(t *testing.T) {
	_, v, c := open(t, keyspace.Options{})
	k := []byte("k")
	_, err := asks.Throttle(v, 0, k, quota(t), 5)
	require.NoError(t, err)
	tat := fmt.Sprint(int64(t0.Add(10 * time.Second)))

	require.True(t, v.Persist(0, k))
	require.False(t, v.Persist(0, k))
	got, _, _ := v.AppendString(nil, 0, k)
	require.Equal(t, tat, string(got), "GET shows the TAT whatever the expiry")
	_, has, exists := v.Expiry(0, k)
	require.True(t, exists && !has)

	c.Advance(time.Hour)
	v.Refresh()
	require.True(t, v.Exists(0, k), "PERSIST keeps an idle key")
	d, err := asks.Throttle(v, 0, k, quota(t), 1)
	require.NoError(t, err)
	require.Equal(t, int64(15), d.Remaining)
	at, has, _ := v.Expiry(0, k)
	require.True(t, has, "a consuming call sets the natural expiry again")
	require.Equal(t, v.Now().Add(2*time.Second), at)

	require.True(t, v.Expire(0, k, v.Now().Add(time.Millisecond), 0))
	c.Advance(time.Millisecond)
	v.Refresh()
	d, err = asks.Throttle(v, 0, k, quota(t), 0)
	require.NoError(t, err)
	require.Equal(t, int64(16), d.Remaining, "a shorter expiry forgets usage")

	_, err = asks.Throttle(v, 0, k, quota(t), 1)
	require.NoError(t, err)
	require.True(t, v.Expire(0, k, v.Now(), 0))
	require.False(t, v.Exists(0, k), "an instant that has passed deletes")
}

func TestExpireConditions(t *testing.T) {
	at := func(s int) limit.Instant { return t0.Add(time.Duration(s) * time.Second) }
	for _, row := range []struct {
		name string
		old  limit.Instant
		at   limit.Instant
		cond decide.ExpireCondition
		want bool
	}{
		{"always", at(10), at(5), 0, true},
		{"NX on a key that expires", at(10), at(20), decide.ExpireIfNone, false},
		{"NX on one that does not", entry.NoExpiry, at(20), decide.ExpireIfNone, true},
		{"XX on a key that expires", at(10), at(20), decide.ExpireIfAny, true},
		{"XX on one that does not", entry.NoExpiry, at(20), decide.ExpireIfAny, false},
		{"GT later", at(10), at(20), decide.ExpireIfLater, true},
		{"GT the same", at(10), at(10), decide.ExpireIfLater, false},
		{"GT than never", entry.NoExpiry, at(20), decide.ExpireIfLater, false},
		{"LT earlier", at(10), at(9), decide.ExpireIfEarlier, true},
		{"LT later", at(10), at(11), decide.ExpireIfEarlier, false},
		{"LT than never", entry.NoExpiry, at(20), decide.ExpireIfEarlier, true},
		{"XX GT", entry.NoExpiry, at(20), decide.ExpireIfAny | decide.ExpireIfLater, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, v, _ := open(t, keyspace.Options{})
			require.NoError(t, v.Put(0, []byte("k"), entry.String, []byte("v"), row.old))
			require.Equal(t, row.want, v.Expire(0, []byte("k"), row.at, row.cond))
			want := row.old
			if row.want {
				want = row.at
			}
			e, ok := v.Load(0, []byte("k"))
			require.True(t, ok)
			require.Equal(t, want, e.Expiry)
		})
	}
	_, v, _ := open(t, keyspace.Options{})
	require.False(t, v.Expire(0, []byte("k"), at(1), 0), "a missing key")
}

func TestRename(t *testing.T) {
	_, v, _ := open(t, keyspace.Options{})
	put := func(k, s string, at limit.Instant) {
		require.NoError(t, v.Put(0, []byte(k), entry.String, []byte(s), at))
	}
	renamed, found := v.Rename(0, []byte("a"), []byte("b"), false)
	require.False(t, renamed || found)
	for i := range 200 { // in the same shard and in other shards
		from, to := fmt.Sprint("from", i), fmt.Sprint("to", i)
		put(from, "x", t0.Add(time.Hour))
		put(to, "y", entry.NoExpiry)
		renamed, found = v.Rename(0, []byte(from), []byte(to), true)
		require.True(t, !renamed && found)
		renamed, found = v.Rename(0, []byte(from), []byte(to), false)
		require.True(t, renamed && found)
		e, ok := v.Load(0, []byte(to))
		require.True(t, ok)
		require.Equal(t, entry.Entry{Kind: entry.String, Expiry: t0.Add(time.Hour), Value: []byte("x")}, e)
		require.False(t, v.Exists(0, []byte(from)))
		renamed, found = v.Rename(0, []byte(to), []byte(to), false)
		require.True(t, renamed && found && v.Exists(0, []byte(to)))
		renamed, found = v.Rename(0, []byte(to), []byte(to), true)
		require.True(t, !renamed && found)
	}
	require.Equal(t, 200, v.Len(0))
}

func TestFlushAndCounts(t *testing.T) {
	ks, v, c := open(t, keyspace.Options{})
	for i := range 1000 {
		_, err := asks.Throttle(v, i%2, key(i), quota(t), 1)
		require.NoError(t, err)
	}
	require.NoError(t, v.Put(1, []byte("s"), entry.String, []byte("v"), entry.NoExpiry))
	st := ks.Stats()
	require.Equal(t, 500, st.Databases[0].Keys)
	require.Equal(t, 501, st.Databases[1].Keys)
	require.Equal(t, 500, st.Databases[1].Expires)
	require.Equal(t, 2*time.Second, st.Databases[0].AvgTTL)
	require.Equal(t, 1000, st.Kinds[entry.Cell])
	require.Equal(t, 1, st.Kinds[entry.String])
	require.Positive(t, st.Memory)

	v.Flush(0)
	require.Zero(t, v.Len(0))
	require.Equal(t, 501, v.Len(1))
	c.Advance(2 * time.Second)
	require.Equal(t, 500, ks.Sweep(1<<20).Removed)
	require.Equal(t, int64(500), ks.Stats().Expired)
	v.FlushAll()
	require.Zero(t, ks.Stats().Memory, "all memory is back")
}

func TestMaxMemoryRefusesNewKeysOnly(t *testing.T) {
	ks, v, _ := open(t, keyspace.Options{})
	_, err := asks.Throttle(v, 0, []byte("old"), quota(t), 1)
	require.NoError(t, err)
	ks.SetMaxMemory(1)
	_, err = asks.Throttle(v, 0, []byte("new"), quota(t), 1)
	require.ErrorIs(t, err, limit.ErrFull)
	require.False(t, v.Exists(0, []byte("new")))
	d, err := asks.Throttle(v, 0, []byte("old"), quota(t), 1)
	require.NoError(t, err)
	require.Equal(t, int64(14), d.Remaining)
	d, err = asks.Throttle(v, 0, []byte("new"), quota(t), 0)
	require.NoError(t, err)
	require.Equal(t, int64(16), d.Remaining, "looking needs no memory")
	renamed, _ := v.Rename(0, []byte("old"), []byte("renamed"), false)
	require.True(t, renamed)
	ks.SetMaxMemory(0)
	_, err = asks.Throttle(v, 0, []byte("new"), quota(t), 1)
	require.NoError(t, err)
}
