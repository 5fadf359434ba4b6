package slidingwindow_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// change is what a recorder would have stored of one call: a delta, a whole value, or the removal
// of the key.
type change struct {
	mode         slidingwindow.Mode
	value, delta []byte
	expiry       limit.Instant
}

// recorded makes a call on k and returns what to record, if there is anything.
func recorded(t testing.TB, k *key, now limit.Instant, c *slidingwindow.Call) (ch change, ok bool) {
	mode, before := k.mode, append([]byte(nil), k.value...)
	if k.expiry <= now && !k.persistent {
		mode, before = slidingwindow.None, nil
	}
	_, err := k.call(t, now, c)
	if err != nil || k.plan.Action == slidingwindow.Keep {
		return ch, false
	}
	if k.plan.Action == slidingwindow.Delete {
		return change{}, true
	}
	ch = change{mode: k.mode, expiry: k.expiry}
	var plan slidingwindow.Plan
	require.NoError(t, slidingwindow.Decide(mode, before, 0, now, c, &plan))
	if delta, ok := plan.AppendDelta([]byte("in front"), before); ok {
		ch.delta = delta[len("in front"):]
		return ch, true
	}
	ch.value = append([]byte(nil), k.value...)
	return ch, true
}

// apply replays ch over k.
func (ch *change) apply(t testing.TB, k *key) {
	switch {
	case ch.delta != nil && (k.mode != ch.mode):
		return // k is newer
	case ch.delta != nil:
		v, err := slidingwindow.ApplyDelta(k.mode, append([]byte(nil), k.value...), nil, ch.delta)
		require.NoError(t, err)
		k.value = v
	default:
		k.value = append([]byte(nil), ch.value...)
	}
	k.mode, k.expiry = ch.mode, ch.expiry
	if k.mode != slidingwindow.None {
		require.NoError(t, slidingwindow.Check(k.mode, k.value))
	}
}

// elements returns the counts of a value: every entry or slot separately.
func elements(mode slidingwindow.Mode, value []byte) (all []int64) {
	if mode != slidingwindow.Log {
		return words(value)
	}
	w := words(value)
	size, head, kept := (len(w)-3)/2, int(uint32(w[2])), int(w[2]>>32)
	all, before := append(all, w[0]), w[1]
	for i := range kept {
		at := 3 + 2*((head+i)%size)
		all = append(all, w[at], w[at+1]-before)
		before = w[at+1]
	}
	return all
}

// TestDeltasReplay: replayed over any state between the first and the last call, all changes
// together give the last state.
func TestDeltasReplay(t *testing.T) {
	deltas := 0
	rapid.Check(t, func(rt *rapid.T) {
		c := drawCall(rt)
		c.Mode = slidingwindow.Mode(rapid.IntRange(3, 4).Draw(rt, "log or buckets"))
		c.Slots = 0
		if c.Even = c.Mode == slidingwindow.Buckets && c.Even; c.Mode == slidingwindow.Buckets {
			c.Slots = rapid.IntRange(2, 12).Draw(rt, "slots")
		} else {
			c.First, c.Phase = false, 0
		}
		if rapid.Bool().Draw(rt, "huge") {
			c.Limit = math.MaxInt64 - rapid.Int64Range(0, 9).Draw(rt, "less")
			c.LogMaxEntries = math.MaxInt64
		}
		var k key
		var changes []change
		states := []key{{}}
		now := limit.Instant(0)
		for range rapid.IntRange(1, 40).Draw(rt, "calls") {
			now += limit.Instant(rapid.Int64Range(0, int64(c.Window)/3+1).Draw(rt, "step"))
			step := c
			step.Quantity = rapid.Int64Range(-5, 9).Draw(rt, "quantity")
			if rapid.IntRange(0, 5).Draw(rt, "much") == 0 {
				step.Quantity = rapid.Int64Range(math.MinInt64, math.MaxInt64).Draw(rt, "quantity")
			}
			step.Charge = slidingwindow.Charge(rapid.IntRange(0, 3).Draw(rt, "charge"))
			if step.Mode == slidingwindow.Log && step.Limit < 100 {
				step.LogMaxEntries = step.Limit + rapid.Int64Range(0, 3).Draw(rt, "entries")
			}
			if rapid.IntRange(0, 15).Draw(rt, "other") == 0 {
				step.Window++
			}
			if ch, ok := recorded(t, &k, now, &step); ok {
				if ch.delta != nil {
					deltas++
				}
				changes = append(changes, ch)
				states = append(states, key{mode: k.mode, expiry: k.expiry, value: append([]byte(nil), k.value...)})
			}
		}
		for _, from := range states {
			got := from
			for i := range changes {
				changes[i].apply(t, &got)
			}
			if k.mode == slidingwindow.None { // possibly by expiry, which is not recorded
				require.True(rt, got.mode == slidingwindow.None || got.expiry <= now)
				continue
			}
			require.Equal(rt, k.mode, got.mode)
			require.Equal(rt, k.expiry, got.expiry)
			require.Equal(rt, elements(k.mode, k.value), elements(got.mode, got.value))
		}
	})
	require.Positive(t, deltas)
}

// TestDeltaOfAFullRing drops every entry of a ring at once. The first entry of the ring then is at
// its old place.
func TestDeltaOfAFullRing(t *testing.T) {
	k := key{mode: slidingwindow.Log, value: value(10, 0, 2<<32, 1, 5, 2, 8), persistent: true}
	c := slidingwindow.Call{Mode: slidingwindow.Log, Limit: 9, Window: 10, Quantity: 4}
	ch, ok := recorded(t, &k, 20, &c)
	require.True(t, ok)
	replayed := key{mode: slidingwindow.Log, value: value(10, 0, 2<<32, 1, 5, 2, 8)}
	ch.apply(t, &replayed)
	require.Equal(t, []int64{10, 20, 4}, elements(slidingwindow.Log, replayed.value))
}

// TestDeltaLayout pins the bytes in files.
func TestDeltaLayout(t *testing.T) {
	c := slidingwindow.Call{Mode: slidingwindow.Log, Limit: 9, Window: 10, Quantity: 3}
	k := key{mode: slidingwindow.Log, value: value(10, 0, 2<<32, 1, 5, 7, 6)}
	k.persistent = true
	ch, _ := recorded(t, &k, 12, &c)
	require.Equal(t, []byte{1, 12, 0, 0, 0, 0, 0, 0, 0, 11, 3}, ch.delta)
	c.Quantity, c.LogMaxEntries, c.Limit = 1, 2, 2
	c.Charge = slidingwindow.Force
	ch, _ = recorded(t, &k, 13, &c)
	require.Equal(t, []byte{2, 13, 0, 0, 0, 0, 0, 0, 0, 1, 4}, ch.delta, "the newest entry moves")

	c = slidingwindow.Call{Mode: slidingwindow.Buckets, Limit: 9, Window: 10, Slots: 5, Quantity: 3}
	k = key{mode: slidingwindow.Buckets, value: value(0, 10, 1, 0, 2, 0, 0, 0), persistent: true}
	ch, _ = recorded(t, &k, 7, &c)
	require.Equal(t, []byte{5, 0, 0, 0, 0, 0, 0, 0, 0, 3, 2, 0, 3}, ch.delta)
}

// TestShortValuesHaveNoDelta: modes other than LOG and BUCKETS are recorded as whole values and
// have no deltas.
func TestShortValuesHaveNoDelta(t *testing.T) {
	for _, mode := range []slidingwindow.Mode{slidingwindow.Counter, slidingwindow.Fixed} {
		var k key
		c := slidingwindow.Call{Mode: mode, Limit: 9, Window: time.Second, Quantity: 3}
		for range 2 {
			ch, ok := recorded(t, &k, 5, &c)
			require.True(t, ok)
			require.Nil(t, ch.delta)
		}
		_, err := slidingwindow.ApplyDelta(mode, k.value, nil, []byte{1, 2, 3})
		require.ErrorIs(t, err, slidingwindow.ErrCorrupt)
	}
}

// TestDeltasAllocateNothing: appending a delta to a large enough buffer allocates nothing.
func TestDeltasAllocateNothing(t *testing.T) {
	for _, mode := range []slidingwindow.Mode{slidingwindow.Log, slidingwindow.Buckets} {
		var k key
		c := slidingwindow.Call{Mode: mode, Limit: 1 << 40, Window: 1000, Slots: 100, Quantity: 3, LogMaxEntries: 1 << 41}
		for now := range limit.Instant(100) {
			_, err := k.call(t, now, &c)
			require.NoError(t, err)
		}
		var p slidingwindow.Plan
		buf := make([]byte, 0, 100)
		value, now := k.value, limit.Instant(100)
		require.Zero(t, testing.AllocsPerRun(20, func() {
			if slidingwindow.Decide(mode, value, 0, now, &c, &p) != nil {
				panic("not decided")
			}
			buf, _ = p.AppendDelta(buf[:0], value)
			value = p.Apply(value, nil)
			var err error
			if value, err = slidingwindow.ApplyDelta(mode, value, nil, buf); err != nil {
				panic(err)
			}
		}), "%v", mode)
	}
}

// FuzzApplyDelta: whatever a delta contains, a valid value stays valid, and a delta that is refused
// changes nothing.
func FuzzApplyDelta(f *testing.F) {
	for mode, values := range stored {
		for _, v := range values {
			f.Add(uint8(mode), v, []byte{1, 12, 0, 0, 0, 0, 0, 0, 0, 11, 3})
			f.Add(uint8(mode), v, []byte{2, 13, 0, 0, 0, 0, 0, 0, 0, 1, 4})
			f.Add(uint8(mode), v, []byte{2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 3})
			f.Add(uint8(mode), v, []byte{3, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3})
			f.Add(uint8(mode), v, []byte{4, 13, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 2, 8})
			f.Add(uint8(mode), v, []byte{5, 13, 0, 0, 0, 0, 0, 0, 0, 4, 12, 2, 8})
			f.Add(uint8(mode), v, []byte{4, 13, 0, 0, 0, 0, 0, 0, 0, 0})
			f.Add(uint8(mode), v, []byte{0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 3, 1, 7})
		}
	}
	f.Fuzz(func(t *testing.T, mode uint8, v, delta []byte) {
		m := slidingwindow.Mode(mode)
		if slidingwindow.Check(m, v) != nil {
			return
		}
		got, err := slidingwindow.ApplyDelta(m, bytes.Clone(v), nil, delta)
		if err != nil {
			require.Equal(t, v, got)
		}
		if m != slidingwindow.None {
			require.Equal(t, err == nil, slidingwindow.CheckDelta(m, delta) == nil)
		}
		require.NoError(t, slidingwindow.Check(m, got))
		if err == nil {
			again, err := slidingwindow.ApplyDelta(m, bytes.Clone(got), nil, delta)
			require.NoError(t, err)
			require.Equal(t, elements(m, got), elements(m, again), "twice is once")
		}
	})
}

// words is the inverse of value.
func words(b []byte) (all []int64) {
	for ; len(b) >= 8; b = b[8:] {
		all = append(all, int64(binary.LittleEndian.Uint64(b)))
	}
	return all
}
