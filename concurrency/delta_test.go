package concurrency_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/limit"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// change is the record of one call: a delta, a whole value, or the removal of the key.
type change struct {
	mode         concurrency.Mode
	value, delta []byte
	expiry       limit.Instant
}

// recorded calls k and returns the record, if there is one.
func recorded(t require.TestingT, k *key, now limit.Instant, c *concurrency.Call) (ch change, ok bool) {
	if k.mode != concurrency.None && k.expiry <= now {
		*k = key{}
	}
	var p concurrency.Plan
	require.NoError(t, concurrency.Decide(k.mode, k.value, k.expiry, now, c, &p))
	delta, isDelta := p.AppendDelta([]byte("in front"), k.value)
	k.apply(&p)
	switch {
	case p.Action == concurrency.Keep:
		require.False(t, isDelta)
		return ch, false
	case p.Action == concurrency.Delete:
		require.False(t, isDelta)
		return ch, true
	case isDelta:
		return change{mode: k.mode, delta: delta[len("in front"):], expiry: k.expiry}, true
	}
	return change{mode: k.mode, value: bytes.Clone(k.value), expiry: k.expiry}, true
}

// apply replays ch over k.
func (ch *change) apply(t require.TestingT, k *key) {
	switch {
	case ch.delta != nil && k.mode != ch.mode:
		require.NoError(t, concurrency.CheckDelta(ch.mode, ch.delta))
		return // k is newer
	case ch.delta != nil:
		v, err := concurrency.ApplyDelta(k.mode, bytes.Clone(k.value), nil, ch.delta)
		require.NoError(t, err)
		k.value, k.expiry = v, ch.expiry
	case ch.value != nil:
		*k = key{mode: ch.mode, value: bytes.Clone(ch.value), expiry: ch.expiry}
	default:
		*k = key{}
		return
	}
	require.NoError(t, concurrency.Check(k.mode, k.value))
}

// holders returns what the members hold that hold a lease at now.
func (k *key) holders(names int, now limit.Instant) map[string]holding {
	all := map[string]holding{}
	if k.mode == concurrency.None || k.expiry <= now {
		return all
	}
	places := map[string]int64{}
	concurrency.List(k.mode, k.value, now, nil, true, names+1, func(name []byte, _ limit.Instant, n int64) { places[string(name)] = n })
	for i := range names {
		name := fmt.Sprint("member-", i)
		var p concurrency.Plan
		if concurrency.Decide(k.mode, k.value, k.expiry, now, renew(name, time.Hour), &p) == nil && p.Decision.Allowed() {
			alone := key{mode: k.mode, value: bytes.Clone(k.value), expiry: limit.MaxInstant}
			all[name] = holding{until: alone.until(name), places: places[name]}
		}
	}
	return all
}

// until returns the instant at which the lease of a member expires.
func (k *key) until(name string) limit.Instant {
	low, high := limit.Instant(0), limit.MaxInstant
	for high-low > 1 {
		mid := low + (high-low)/2
		var p concurrency.Plan
		if concurrency.Decide(k.mode, k.value, k.expiry, mid, renew(name, 1), &p) == nil && p.Decision.Allowed() {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// TestDeltasReplay: the changes of all calls lead to the same leases, whatever state between the
// first and the last call they are replayed on.
func TestDeltasReplay(t *testing.T) {
	for _, names := range []int{1, 4, 90} {
		rapid.Check(t, func(rt *rapid.T) {
			var k key
			now := t0
			if names > 64 {
				k = *filled(t, rapid.IntRange(30, names).Draw(rt, "filled"))
			}
			var changes []change
			states := []key{{mode: k.mode, value: bytes.Clone(k.value), expiry: k.expiry}}
			for range rapid.IntRange(1, 30).Draw(rt, "calls") {
				now += limit.Instant(rapid.Int64Range(0, 3).Draw(rt, "step"))
				if rapid.IntRange(0, 9).Draw(rt, "later") == 0 {
					now += limit.Instant(rapid.IntRange(1, 100).Draw(rt, "seconds")) * 1e9
				}
				member := fmt.Sprint("member-", rapid.IntRange(0, names-1).Draw(rt, "member"))
				lease := time.Duration(rapid.Int64Range(1, 9).Draw(rt, "lease"))
				c := []*concurrency.Call{
					acquire(member, 99, lease), release(member), renew(member, lease), acquire(member, 999, lease),
				}[rapid.IntRange(0, 3).Draw(rt, "op")]
				if c.Limit == 999 {
					c.Places = rapid.Int64Range(1, 3).Draw(rt, "places")
				}
				if ch, ok := recorded(rt, &k, now, c); ok {
					changes = append(changes, ch)
					states = append(states, key{mode: k.mode, value: bytes.Clone(k.value), expiry: k.expiry})
				}
			}
			want := k.holders(names, now)
			for _, got := range states {
				got.value = bytes.Clone(got.value)
				for i := range changes {
					changes[i].apply(rt, &got)
				}
				require.Equal(rt, want, got.holders(names, now))
			}
		})
	}
}

// TestDeltaLayout pins the bytes that files contain.
func TestDeltaLayout(t *testing.T) {
	k := filled(t, 3)
	ch, ok := recorded(t, k, 258, acquire("bob", 4, 300))
	require.True(t, ok)
	require.Equal(t, append([]byte{1, 2, 1, 0, 0, 0, 0, 0, 0, 0xac, 2}, "bob"...), ch.delta)
	ch, ok = recorded(t, k, 259, release("bob"))
	require.True(t, ok)
	require.Equal(t, append([]byte{2, 3, 1, 0, 0, 0, 0, 0, 0}, "bob"...), ch.delta)
	two := acquire("two", 9, 300)
	two.Places = 2
	ch, ok = recorded(t, k, 259, two)
	require.True(t, ok)
	require.Empty(t, ch.delta, "the mode has changed")
	two.Places = 300
	two.Force = true
	ch, ok = recorded(t, k, 258, two)
	require.True(t, ok)
	require.Equal(t, append([]byte{3, 2, 1, 0, 0, 0, 0, 0, 0, 0xac, 2, 0xac, 2}, "two"...), ch.delta)
}

// TestDeltasAllocateNothing: a delta does not allocate in a buffer with enough capacity.
func TestDeltasAllocateNothing(t *testing.T) {
	for _, members := range []int{10, 1000} {
		k := filled(t, members)
		var p concurrency.Plan
		buf := make([]byte, 0, 100)
		calls := []*concurrency.Call{renew("member-4", time.Hour), release("member-5"), acquire("member-5", int64(members), time.Hour)}
		round := func() {
			for _, c := range calls {
				if concurrency.Decide(k.mode, k.value, k.expiry, t0, c, &p) != nil {
					panic("not decided")
				}
				buf, _ = p.AppendDelta(buf[:0], k.value)
				k.apply(&p)
				value, err := concurrency.ApplyDelta(k.mode, k.value, k.other, buf)
				if err != nil {
					panic(err)
				}
				if &value[0] != &k.value[0] {
					k.value, k.other = value, k.value[:0]
				}
			}
		}
		for range 2 * members {
			round()
		}
		require.Zero(t, testing.AllocsPerRun(1000, round), "%d members", members)
	}
}

// FuzzApplyDelta: a sound set stays sound under any delta. A delta that is refused changes
// nothing.
func FuzzApplyDelta(f *testing.F) {
	holds := append([]byte{1, 2, 1, 0, 0, 0, 0, 0, 0, 0xac, 2}, "bob"...)
	gone := append([]byte{2, 3, 1, 0, 0, 0, 0, 0, 0}, "member-3"...)
	for _, members := range []int{1, 2, 64, 65, 100} {
		f.Add(filled(f, members).value, holds)
		f.Add(filled(f, members).value, gone)
		f.Add(filled(f, members).value, gone[:5])
	}
	f.Fuzz(func(t *testing.T, value, delta []byte) {
		if concurrency.Check(concurrency.Leases, value) != nil {
			return
		}
		got, err := concurrency.ApplyDelta(concurrency.Leases, bytes.Clone(value), nil, delta)
		if err != nil {
			require.ErrorIs(t, err, concurrency.ErrCorrupt)
			require.Equal(t, value, got)
		}
		require.NoError(t, concurrency.Check(concurrency.Leases, got))
		_, err = concurrency.ApplyDelta(concurrency.None, got, nil, delta)
		require.Error(t, err)
	})
}
