package keyspace_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/asks"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// bucket returns a call that takes quantity tokens of ten, one of which is refilled per second.
func bucket(mode tokenbucket.Mode, quantity int64) *tokenbucket.Call {
	return &tokenbucket.Call{
		Mode: mode, Capacity: 10, Init: 10, Count: 1, Period: time.Second, Interval: time.Second, Quantity: quantity,
		Warmup: time.Minute, Cold: 3,
	}
}

func windowIn(mode slidingwindow.Mode, quantity int64) *slidingwindow.Call {
	c := window(quantity)
	c.Mode = mode
	if mode == slidingwindow.Buckets {
		c.Slots = 6
	}
	if mode == slidingwindow.Calendar {
		c.Window, c.Calendar = 0, calendar.Rule{Unit: calendar.Day, From: 30}
	}
	return c
}

func leaseOf(member string) *concurrency.Call {
	return &concurrency.Call{Member: []byte(member), Limit: 3, Lease: time.Minute}
}

// family calls and describes one kind of limiter.
type family struct {
	name string
	use  func(v *keyspace.Handle, key []byte, quantity int64) (limit.Decision, error)
}

func families() (f []family) {
	for _, m := range []slidingwindow.Mode{slidingwindow.Counter, slidingwindow.Fixed, slidingwindow.Log, slidingwindow.Buckets, slidingwindow.Calendar} {
		f = append(f, family{m.String(), func(v *keyspace.Handle, key []byte, n int64) (limit.Decision, error) {
			return asks.Allow(v, 0, key, windowIn(m, n))
		}})
	}
	for _, m := range []tokenbucket.Mode{tokenbucket.Greedy, tokenbucket.Debt, tokenbucket.Interval, tokenbucket.Leaky, tokenbucket.Warmup} {
		f = append(f, family{m.String(), func(v *keyspace.Handle, key []byte, n int64) (limit.Decision, error) {
			return asks.Acquire(v, 0, key, bucket(m, n))
		}})
	}
	return append(f, family{"leases", func(v *keyspace.Handle, key []byte, _ int64) (limit.Decision, error) {
		return asks.Lease(v, 0, key, leaseOf("m"))
	}})
}

func TestEveryFamilyIsStored(t *testing.T) {
	for _, f := range families() {
		t.Run(f.name, func(t *testing.T) {
			overStorages(t, func(t *testing.T, o keyspace.Options) {
				ks, v, c := open(t, o)
				k := []byte("k")
				d, err := f.use(v, k, 1)
				require.NoError(t, err)
				require.True(t, d.Allowed())
				require.Equal(t, "ratelimit", v.Kind(0, k).Type())
				enc, ok := v.Encoding(0, k)
				require.True(t, ok)
				require.Equal(t, f.name, enc)
				at, has, _ := v.Expiry(0, k)
				require.True(t, has)
				if f.name != "warmup" { // a warm-up bucket lives until it is cold
					require.Equal(t, t0.Add(d.ResetAfter), at)
				}
				require.Equal(t, 1, ks.Stats().Kinds[v.Kind(0, k)])

				fields := map[string]any{}
				found, err := v.Describe(0, k, nil, func(field, text string, n int64, isText bool) {
					fields[field] = n
					if isText {
						fields[field] = text
					}
				})
				require.NoError(t, err)
				require.True(t, found)
				require.Equal(t, "ratelimit", fields["type"])
				require.Equal(t, f.name, fields["mode"])
				require.Equal(t, int64(at)/1e6, fields["expire-at"])
				size, ok := v.MemoryUsage(0, k)
				require.True(t, ok)
				require.Equal(t, size, fields["bytes"])
				require.Contains(t, fields, "reset-ms")

				for _, wrong := range families() {
					if f.name == "leases" || wrong.name == "leases" {
						_, err = wrong.use(v, k, 1)
						require.Equal(t, f.name != wrong.name, err != nil, wrong.name)
					}
				}
				_, err = asks.Throttle(v, 0, k, quota(t), 1)
				require.ErrorIs(t, err, limit.ErrWrongType)
				_, _, err = v.AppendString(nil, 0, k)
				require.ErrorIs(t, err, limit.ErrWrongType)

				at, _, _ = v.Expiry(0, k)
				c.Set(at - 1)
				v.Refresh()
				require.True(t, v.Exists(0, k))
				c.Set(at)
				v.Refresh()
				require.False(t, v.Exists(0, k))
				_, err = asks.Throttle(v, 0, k, quota(t), 1)
				require.NoError(t, err, "an expired key has no type")
			})
		})
	}
}

func TestBucketsAndWindowsAreApart(t *testing.T) {
	_, v, _ := open(t, keyspace.Options{})
	_, err := asks.Allow(v, 0, []byte("w"), window(1))
	require.NoError(t, err)
	_, err = asks.Acquire(v, 0, []byte("w"), bucket(tokenbucket.Greedy, 1))
	require.ErrorIs(t, err, limit.ErrWrongType)
	_, err = asks.Acquire(v, 0, []byte("b"), bucket(tokenbucket.Greedy, 1))
	require.NoError(t, err)
	_, err = asks.Allow(v, 0, []byte("b"), window(1))
	require.ErrorIs(t, err, limit.ErrWrongType)
}

func TestStringsAreDescribed(t *testing.T) {
	_, v, _ := open(t, keyspace.Options{})
	for value, want := range map[string]string{
		"": "embstr", "12": "int", "-9223372036854775808": "int", "9223372036854775808": "embstr", "012": "embstr", "+1": "embstr",
		fmt.Sprintf("%044d", 0): "embstr", fmt.Sprintf("%045d", 0): "raw",
	} {
		require.NoError(t, v.Put(0, []byte("s"), entry.String, []byte(value), entry.NoExpiry))
		got, ok := v.Encoding(0, []byte("s"))
		require.True(t, ok)
		require.Equal(t, want, got, value)
	}
	_, ok := v.Encoding(0, []byte("none"))
	require.False(t, ok)
	found, err := v.Describe(0, []byte("none"), nil, nil)
	require.NoError(t, err)
	require.False(t, found)
	_, ok = v.MemoryUsage(0, []byte("none"))
	require.False(t, ok)
	_, err = asks.Throttle(v, 0, []byte("c"), quota(t), 1)
	require.NoError(t, err)
	enc, _ := v.Encoding(0, []byte("c"))
	require.Equal(t, "embstr", enc)
	var names []string
	_, err = v.Describe(0, []byte("c"), nil, func(field, _ string, _ int64, _ bool) { names = append(names, field) })
	require.NoError(t, err)
	require.Equal(t, []string{"type", "mode", "tat-ns", "debt-ns", "reset-ms", "missing", "expire-at", "bytes"}, names)
}

func TestTypes(t *testing.T) {
	for k, want := range map[entry.Kind]string{
		entry.None: "none", entry.String: "string", entry.Cell: "string", entry.Hash: "hash",
		entry.SortedSet: "zset", entry.List: "list", entry.Set: "set", entry.Ban: "ratelimit", 17: "ratelimit", 33: "ratelimit", 49: "ratelimit",
	} {
		require.Equal(t, want, k.Type())
	}
}

func TestCancelledReservation(t *testing.T) {
	_, v, _ := open(t, keyspace.Options{})
	k := []byte("k")
	call := bucket(tokenbucket.Greedy, 10)
	_, err := asks.Acquire(v, 0, k, call)
	require.NoError(t, err)
	call.Quantity, call.MaxWait, call.Waits = 2, time.Minute, true
	d, err := asks.Acquire(v, 0, k, call)
	require.NoError(t, err)
	require.Equal(t, 2*time.Second, d.RetryAfter)
	asks.Cancel(v, 0, k, call)
	d, err = asks.Acquire(v, 0, k, bucket(tokenbucket.Greedy, 0))
	require.NoError(t, err)
	require.Equal(t, 10*time.Second, d.ResetAfter)
	v.Delete(0, k)
	asks.Cancel(v, 0, k, call)
	require.False(t, v.Exists(0, k), "nothing to give back to")
}

func TestHotPathsAllocateNothing(t *testing.T) {
	overStorages(t, func(t *testing.T, o keyspace.Options) {
		_, v, c := open(t, o)
		for _, mode := range []slidingwindow.Mode{slidingwindow.Counter, slidingwindow.Fixed, slidingwindow.Calendar} {
			a := &decide.Ask{Key: []byte(mode.String()), Family: decide.Window, Window: *windowIn(mode, 3)}
			require.Zero(t, testing.AllocsPerRun(1000, func() {
				c.Advance(time.Second)
				v.Refresh()
				v.Decide(a)
			}), mode)
		}
		for _, mode := range []tokenbucket.Mode{tokenbucket.Greedy, tokenbucket.Interval, tokenbucket.Leaky} {
			a := &decide.Ask{Key: []byte(mode.String()), Family: decide.Bucket, Bucket: *bucket(mode, 3)}
			require.Zero(t, testing.AllocsPerRun(1000, func() {
				c.Advance(time.Second)
				v.Refresh()
				v.Decide(a)
			}), mode)
		}
		k := []byte("cell")
		cell := &decide.Ask{Key: k, Family: decide.Cell, Quota: *quota(t), Quantity: 1}
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			c.Advance(time.Second) // allowed, denied or expired by turns
			v.Enter()
			v.Refresh()
			v.Decide(cell)
			v.Leave()
		}))
		all := &decide.Ask{Family: decide.Several, Clauses: clauses(t, 1, 1, 1), Details: make([]limit.Decision, 3)}
		held := refs("cl", "sw", "tb")
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			c.Advance(time.Second)
			v.Refresh()
			v.Decide(all) // passed or refused by turns
			v.Lock(held)
			v.Decide(all)
			v.Unlock()
		}), "several keys")
		buf := make([]byte, 0, 64)
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			_, _, _ = v.AppendString(buf, 0, k)
			v.Exists(0, k)
			v.Expiry(0, k)
		}))
	})
}
