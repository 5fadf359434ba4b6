package slidingwindow_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// edited changes k by edit and returns what to record: a delta if Diff makes one, otherwise the
// value.
func edited(t testing.TB, k *key, edit func(v []byte) []byte) change {
	before := bytes.Clone(k.value)
	k.value = edit(k.value)
	require.NoError(t, slidingwindow.Check(k.mode, k.value))
	ch := change{mode: k.mode, expiry: k.expiry}
	delta, ok := slidingwindow.Diff(k.mode, []byte("in front"), before, k.value)
	require.Equal(t, "in front", string(delta[:len("in front")]))
	if !ok {
		require.Len(t, delta, len("in front"))
		ch.value = bytes.Clone(k.value)
		return ch
	}
	ch.delta = delta[len("in front"):]
	require.Less(t, len(ch.delta), len(k.value))
	require.NoError(t, slidingwindow.CheckDelta(k.mode, ch.delta))
	for range 2 {
		got, err := slidingwindow.ApplyDelta(k.mode, before, nil, ch.delta)
		require.NoError(t, err)
		require.Equal(t, elements(k.mode, k.value), elements(k.mode, got))
		before = got
	}
	return ch
}

// given gives n units back to the slot at at, and returns what to record.
func given(t testing.TB, k *key, at limit.Instant, n int64) (ch change, ok bool) {
	before := bytes.Clone(k.value)
	units := slidingwindow.GiveBack(k.mode, k.value, at, n)
	delta, ok := slidingwindow.Diff(k.mode, []byte("in front"), before, k.value)
	require.Equal(t, "in front", string(delta[:len("in front")]))
	ch = change{mode: k.mode, expiry: k.expiry, delta: delta[len("in front"):]}
	if !ok {
		require.Empty(t, ch.delta)
		return ch, false
	}
	if units == 0 {
		return ch, true
	}
	require.LessOrEqual(t, len(ch.delta), 40)
	require.Less(t, len(ch.delta), len(k.value))
	replayed, err := slidingwindow.ApplyDelta(k.mode, before, nil, ch.delta)
	require.NoError(t, err)
	require.Equal(t, elements(k.mode, k.value), elements(k.mode, replayed))
	return ch, true
}

// holder makes random calls and changes on a key, as with holds.
type holder struct {
	key
	call slidingwindow.Call
	held holds
}

// step makes one call or change, and returns what to record, if there is anything.
func (h *holder) step(t *rapid.T, tb testing.TB, now limit.Instant) (ch change, ok bool) {
	what := rapid.IntRange(0, 9).Draw(t, "what")
	switch {
	case what < 5 || h.mode == slidingwindow.None || h.expiry <= now:
		c := h.call
		c.Quantity = rapid.Int64Range(-2, 9).Draw(t, "quantity")
		if c.Limit == math.MaxInt64 {
			c.Quantity = rapid.SampledFrom([]int64{1, 5, 1 << 61, 1 << 62, -1 << 62, math.MaxInt64 - 5, math.MaxInt64}).Draw(t, "huge")
		}
		c.Charge = rapid.SampledFrom([]slidingwindow.Charge{slidingwindow.Whole, slidingwindow.Force}).Draw(t, "charge")
		ch, ok = recorded(tb, &h.key, now, &c)
		if ok && h.mode != slidingwindow.None {
			h.held = append(h.held, slot{slidingwindow.Newest(h.mode, h.value), max(1, c.Quantity/2)})
		}
		return ch, ok
	case what < 8 && len(h.held) > 0:
		hold := h.held[rapid.IntRange(0, len(h.held)-1).Draw(t, "which")]
		n := rapid.Int64Range(1, 2*min(hold.units, 1<<61)).Draw(t, "units")
		if rapid.Bool().Draw(t, "at once") {
			return given(tb, &h.key, hold.at, n)
		}
		return edited(tb, &h.key, func(v []byte) []byte {
			slidingwindow.GiveBack(h.mode, v, hold.at, n)
			return v
		}), true
	case what < 9:
		n := rapid.Int64Range(1, max(40, h.call.Limit/3)).Draw(t, "units")
		return edited(tb, &h.key, func(v []byte) []byte {
			slidingwindow.TakeUnheld(h.mode, v, now, n, func(_, at limit.Instant) int64 { return int64(at) % 3 })
			return v
		}), true
	}
	return edited(tb, &h.key, func(v []byte) []byte { return slidingwindow.Clear(h.mode, v) }), true
}

// TestDiffsReplay makes calls and changes as with holds, and time goes back now and then. Replayed
// over any state between the first and the last change, all changes together give the last state.
func TestDiffsReplay(t *testing.T) {
	deltas := map[slidingwindow.Mode]int{}
	rapid.Check(t, func(rt *rapid.T) {
		c := drawCall(rt)
		c.Mode = slidingwindow.Mode(rapid.IntRange(3, 4).Draw(rt, "log or buckets"))
		c.Even, c.First, c.Phase, c.Slots = false, false, 0, rapid.IntRange(2, 12).Draw(rt, "slots")
		c.Limit = rapid.SampledFrom([]int64{4, 1 << 40, math.MaxInt64}).Draw(rt, "limit")
		c.LogMaxEntries = math.MaxInt64
		if c.Limit == 4 {
			c.LogMaxEntries = rapid.Int64Range(4, 6).Draw(rt, "entries")
		}
		k := holder{call: c}
		var changes []change
		states := []key{{}}
		now, latest := limit.Instant(0), limit.Instant(0)
		for range rapid.IntRange(1, 50).Draw(rt, "steps") {
			now += limit.Instant(rapid.Int64Range(-int64(c.Window)/10, int64(c.Window)/4+1).Draw(rt, "step"))
			latest = max(latest, now)
			ch, ok := k.step(rt, t, now)
			if !ok {
				continue
			}
			if len(ch.delta) > 0 && (k.mode == slidingwindow.Log && ch.delta[0] >= 4 || k.mode == slidingwindow.Buckets && ch.delta[0] == 0) {
				deltas[k.mode]++
			}
			changes = append(changes, ch)
			states = append(states, key{mode: k.mode, expiry: k.expiry, value: bytes.Clone(k.value)})
		}
		for _, from := range states {
			got := from
			for i := range changes {
				changes[i].apply(t, &got)
			}
			if k.mode == slidingwindow.None { // possibly by expiry, which is not recorded
				require.True(rt, got.mode == slidingwindow.None || got.expiry <= latest)
				continue
			}
			require.Equal(rt, k.mode, got.mode)
			require.Equal(rt, elements(k.mode, k.value), elements(got.mode, got.value))
		}
	})
	require.Positive(t, deltas[slidingwindow.Log])
	require.Positive(t, deltas[slidingwindow.Buckets])
}

// TestDiffOfALongLog: a give-back of one entry has a short delta, wherever the entry is.
func TestDiffOfALongLog(t *testing.T) {
	const n = 100_000
	w := append([]int64{1e18, 0, n << 32}, make([]int64, 2<<17)...)
	for i := range int64(n) {
		w[3+2*i], w[4+2*i] = 1e17+1e9*i, 2*(i+1)
	}
	for _, i := range []int64{0, 1, n / 2, n - 2, n - 1} {
		for _, units := range []int64{1, 2} {
			k := key{mode: slidingwindow.Log, value: value(w...)}
			ch := edited(t, &k, func(v []byte) []byte {
				require.Equal(t, units, slidingwindow.GiveBack(slidingwindow.Log, v, limit.Instant(1e17+1e9*i), units))
				return v
			})
			require.NotNil(t, ch.delta)
			require.Less(t, len(ch.delta), 24)
			k.value = value(w...)
			_, ok := given(t, &k, limit.Instant(1e17+1e9*i), units)
			require.True(t, ok)
		}
	}
}

// TestDiffInsertsEntries applies deltas that list entries which the log does not have, so that its
// ring has to grow, at every head of the ring.
func TestDiffInsertsEntries(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(name string) []byte {
			size := int64(1) << rapid.IntRange(0, 4).Draw(rt, name)
			kept := rapid.Int64Range(0, size).Draw(rt, "kept")
			head := rapid.Int64Range(0, size-1).Draw(rt, "head")
			total := rapid.Int64Range(-5, 5).Draw(rt, "base")
			w := append([]int64{100, total, kept<<32 | head}, make([]int64, 2*size)...)
			at := rapid.Int64Range(-9, 9).Draw(rt, "first")
			for i := range kept {
				at += rapid.Int64Range(1, 3).Draw(rt, "distance")
				total += rapid.Int64Range(1, 3).Draw(rt, "units")
				w[3+2*((head+i)%size)], w[4+2*((head+i)%size)] = at, total
			}
			return value(w...)
		}
		before, after := draw("before"), draw("after")
		delta, ok := slidingwindow.Diff(slidingwindow.Log, nil, before, after)
		if !ok {
			require.Empty(rt, delta)
			return
		}
		kept := bytes.Clone(before)
		dst := bytes.Repeat([]byte{0xff}, 2000)
		got, err := slidingwindow.ApplyDelta(slidingwindow.Log, before, dst, delta)
		require.NoError(rt, err)
		require.NoError(rt, slidingwindow.Check(slidingwindow.Log, got))
		require.Equal(rt, elements(slidingwindow.Log, after), elements(slidingwindow.Log, got))
		if len(got) > len(before) {
			require.Same(rt, &dst[0], &got[0])
			require.Equal(rt, kept, before, "a value that does not fit is not changed")
		}
	})
}

// TestDiffLayout pins the bytes in files.
func TestDiffLayout(t *testing.T) {
	diff := func(mode slidingwindow.Mode, before, after []byte) []byte {
		delta, ok := slidingwindow.Diff(mode, nil, before, after)
		require.True(t, ok)
		return delta
	}
	at := func(first ...byte) []byte { return append(first, 0, 0, 0, 0, 0, 0, 0) }
	log := value(10, 0, 4<<32, 1, 5, 3, 6, 7, 9, 9, 11)
	require.Equal(t, append(at(4, 9), 2, 2, 2, 4, 0),
		diff(slidingwindow.Log, log, value(10, 0, 3<<32, 1, 5, 7, 7, 9, 9, 0, 0)), "7 has two units, and 3 is removed")
	require.Equal(t, append(at(5, 7), 3, 6),
		diff(slidingwindow.Log, log, value(10, 5, 2<<32, 3, 6, 7, 9)), "the first and the last are removed")
	require.Equal(t, append(at(4, 0), 0), diff(slidingwindow.Log, log, value(10, 0, 0, 0, 0)))

	require.Equal(t, append(at(0, 5, 20), 1, 1, 6, 3, 0),
		diff(slidingwindow.Buckets, value(20, 10, 1, 1, 6, 1, 1, 7), value(20, 10, 1, 1, 6, 1, 1, 0)))
	require.Equal(t, append(at(0, 5, 20), 3, 0, 3, 3, 0),
		diff(slidingwindow.Buckets, value(20, 10, 1, 1, 6, 1, 1, 7), value(20, 10, 3, 3, 6, 1, 0, 7)))
}

// TestDiffRefuses: what a delta cannot describe is recorded as a whole.
func TestDiffRefuses(t *testing.T) {
	long, counts, entries := make([]int64, 20), []int64{20, 10, 1}, []int64{1, 0, 16 << 32}
	for i := range int64(16) {
		counts = append(counts, math.MaxInt64/17)
		entries = append(entries, (i-8)<<59, (i+1)<<58)
	}
	cases := []struct {
		mode          slidingwindow.Mode
		before, after []byte
	}{
		{slidingwindow.Counter, value(20, 10, 5, 5), value(20, 10, 5, 4)},
		{slidingwindow.Fixed, value(20, 10, 5), value(20, 10, 4)},
		{slidingwindow.None, nil, nil},
		{slidingwindow.Log, value(10, 0, 1<<32, 5, 1, 0, 0), value(11, 0, 1<<32, 5, 1, 0, 0)},
		{slidingwindow.Buckets, value(append([]int64{20, 10, 1}, long...)...), value(append([]int64{20, 11, 1}, long...)...)},
		{slidingwindow.Buckets, value(append([]int64{20, 10, 1}, long...)...), value(append([]int64{21, 10, 1}, long...)...)},
		{slidingwindow.Buckets, value(append([]int64{20, 10, 1}, long...)...), value(append([]int64{20, 10, 1, 0}, long...)...)},
		{slidingwindow.Buckets, value(append([]int64{20, 10, 1}, make([]int64, 16)...)...), value(counts...)},
		{slidingwindow.Log, value(1, 0, 0, 0, 0), value(entries...)},
	}
	for i, c := range cases {
		dst := make([]byte, 3, 100)
		delta, ok := slidingwindow.Diff(c.mode, dst, c.before, c.after)
		require.False(t, ok, "%d", i)
		require.Len(t, delta, 3)
	}
}

// TestApplyDeltaReducesTheOldest: a sum beyond int64 costs the oldest counts.
func TestApplyDeltaReducesTheOldest(t *testing.T) {
	varint := func(b []byte, n uint64) []byte { return binary.AppendUvarint(b, n) }
	list := append([]byte{4, 20, 0, 0, 0, 0, 0, 0, 0}, 4)
	list = varint(varint(list, 5), math.MaxInt64-10) // at 15
	got, err := slidingwindow.ApplyDelta(slidingwindow.Log, value(100, -3, 4<<32, 1, 1, 10, 9, 12, 11, 14, 12), nil, list)
	require.NoError(t, err)
	require.Equal(t, []slot{{10, 3}, {12, 2}, {14, 1}, {15, math.MaxInt64 - 10}, {20, 4}}, slotsOf(slidingwindow.Log, got))

	many := append(varint([]byte{4, 20, 0, 0, 0, 0, 0, 0, 0}, 4), varint([]byte{1}, math.MaxInt64-5)...)
	for range 4 { // a sum beyond 2^64
		many = varint(varint(many, 1), math.MaxInt64)
	}
	got, err = slidingwindow.ApplyDelta(slidingwindow.Log, value(100, 0, 2<<32, 1, 1, 18, 9), nil, many)
	require.NoError(t, err)
	require.Equal(t, []slot{{18, 1}, {19, math.MaxInt64 - 5}, {20, 4}}, slotsOf(slidingwindow.Log, got))

	list = varint(varint([]byte{0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 1), math.MaxInt64-5)
	got, err = slidingwindow.ApplyDelta(slidingwindow.Buckets, value(0, 30, 0, 2, 9, 8), nil, list)
	require.NoError(t, err)
	require.Equal(t, []int64{0, 30, 1, 2, math.MaxInt64 - 5, 3}, words(got))
}

// TestListedDeltasAreChecked: deltas that do not keep the order of the format change nothing.
func TestListedDeltasAreChecked(t *testing.T) {
	at := func(flags, newest byte, rest ...byte) []byte {
		return append([]byte{flags, newest, 0, 0, 0, 0, 0, 0, 0}, rest...)
	}
	slots := func(m byte, rest ...byte) []byte { return append([]byte{0, m, 0, 0, 0, 0, 0, 0, 0, 0}, rest...) }
	huge := binary.AppendUvarint(nil, math.MaxUint64)
	tests := map[slidingwindow.Mode][][]byte{
		slidingwindow.Log: {
			{4}, {4, 1, 2, 3}, at(4, 20), at(6, 20, 1), at(12, 20, 1), at(8, 20, 1), // flags
			at(4, 20, huge...),                             // units beyond int64
			at(5, 20, 1), at(5, 20, 1, 0), at(5, 20, 0, 1), // D is missing, is the newest, and there is none
			at(4, 20, 0, 1, 1),                  // entries of an empty log
			at(4, 20, 1, 1), at(4, 20, 1, 0, 1), // no units, no distance
			at(4, 20, 1, 1, 0, 0, 1), at(5, 20, 1, 5, 5, 1), // no distance, and an entry that is dropped
			at(4, 20, append([]byte{1}, append(huge, 2)...)...), // an instant before the first
			at(4, 20, append([]byte{1, 1}, huge...)...),
		},
		slidingwindow.Buckets: {
			{0}, {0, 2}, slots(1, 0), slots(0, 0), slots(2, 2), // slots and slot
			slots(2), slots(2, 0, 2, 1), slots(2, 0, 0, 1, 2, 1), slots(2, 0, 1, 1, 1, 1), // positions
			slots(2, 0, 1, 1, 0, 1), slots(2, 0, 0), slots(2, append([]byte{0, 0}, huge...)...),
		},
	}
	values := map[slidingwindow.Mode][]byte{
		slidingwindow.Log: value(100, 0, 2<<32, 1, 1, 18, 9), slidingwindow.Buckets: value(0, 30, 0, 2, 9),
	}
	for mode, deltas := range tests {
		for i, delta := range deltas {
			v := bytes.Clone(values[mode])
			require.ErrorIs(t, slidingwindow.CheckDelta(mode, delta), slidingwindow.ErrCorrupt, "%v %d", mode, i)
			got, err := slidingwindow.ApplyDelta(mode, v, nil, delta)
			require.ErrorIs(t, err, slidingwindow.ErrCorrupt)
			require.Equal(t, values[mode], got)
		}
	}
	other := slots(3, 0, 2, 7)
	require.NoError(t, slidingwindow.CheckDelta(slidingwindow.Buckets, other))
	got, err := slidingwindow.ApplyDelta(slidingwindow.Buckets, bytes.Clone(values[slidingwindow.Buckets]), nil, other)
	require.NoError(t, err)
	require.Equal(t, values[slidingwindow.Buckets], got, "another number of slots")
	for _, mode := range modes {
		require.ErrorIs(t, slidingwindow.CheckDelta(mode, nil), slidingwindow.ErrCorrupt)
	}
}

// TestDiffAllocatesNothing: with a buffer that is large enough, nothing is allocated for a delta.
func TestDiffAllocatesNothing(t *testing.T) {
	for _, mode := range []slidingwindow.Mode{slidingwindow.Log, slidingwindow.Buckets} {
		var k key
		c := slidingwindow.Call{Mode: mode, Limit: 1 << 40, Window: 1000, Slots: 100, Quantity: 9, LogMaxEntries: 1 << 41}
		for now := range limit.Instant(100) {
			_, err := k.call(t, now, &c)
			require.NoError(t, err)
		}
		before, buf := bytes.Clone(k.value), make([]byte, 0, 100)
		replayed := bytes.Clone(before)
		require.Zero(t, testing.AllocsPerRun(5, func() {
			if slidingwindow.GiveBack(mode, k.value, 50, 2) == 0 {
				panic("not given")
			}
			var ok bool
			if buf, ok = slidingwindow.Diff(mode, buf[:0], before, k.value); !ok {
				panic("no delta")
			}
			var err error
			if replayed, err = slidingwindow.ApplyDelta(mode, replayed, nil, buf); err != nil {
				panic(err)
			}
		}), "%v", mode)
		require.Equal(t, elements(mode, k.value), elements(mode, replayed))
	}
}

// FuzzDiff: the delta between two valid values makes the second of the first.
func FuzzDiff(f *testing.F) {
	for mode, values := range stored {
		for _, v := range values {
			for _, w := range values {
				f.Add(uint8(mode), v, w)
			}
		}
	}
	f.Fuzz(func(t *testing.T, mode uint8, before, after []byte) {
		m := slidingwindow.Mode(mode)
		if slidingwindow.Check(m, before) != nil || slidingwindow.Check(m, after) != nil {
			return
		}
		delta, ok := slidingwindow.Diff(m, nil, before, after)
		if !ok {
			require.Empty(t, delta)
			return
		}
		require.Less(t, len(delta), len(after))
		require.NoError(t, slidingwindow.CheckDelta(m, delta))
		got, err := slidingwindow.ApplyDelta(m, bytes.Clone(before), nil, delta)
		require.NoError(t, err)
		require.NoError(t, slidingwindow.Check(m, got))
		require.Equal(t, elements(m, after), elements(m, got))
	})
}
