package slidingwindow_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var modes = []slidingwindow.Mode{
	slidingwindow.Counter, slidingwindow.Fixed, slidingwindow.Log, slidingwindow.Buckets, slidingwindow.Calendar,
}

// slot is a window, a slot of BUCKETS or an entry of LOG.
type slot struct {
	at    limit.Instant
	units int64
}

// slotsOf decodes the slots of a value that have units, the oldest first.
func slotsOf(mode slidingwindow.Mode, v []byte) (all []slot) {
	w := words(v)
	add := func(at, units int64) {
		if units > 0 {
			all = append(all, slot{limit.Instant(at), units})
		}
	}
	switch mode {
	case slidingwindow.Counter:
		add(w[0]-w[1], w[3])
		add(w[0], w[2])
	case slidingwindow.Fixed, slidingwindow.Calendar:
		add(w[0], w[2])
	case slidingwindow.Log:
		e := elements(mode, v)[1:]
		for ; len(e) > 0; e = e[2:] {
			add(e[0], e[1])
		}
	case slidingwindow.Buckets:
		counts := w[3:]
		m := int64(len(counts))
		for i := w[2] + 1; i < m; i++ {
			add(w[0]-w[1]+limit.CeilDiv(i*w[1], m), counts[i])
		}
		for i := range w[2] + 1 {
			add(w[0]+limit.CeilDiv(i*w[1], m), counts[i])
		}
	}
	return all
}

// slotList is a model of a limiter: all slots with units, the oldest first. Its clock never goes
// back.
type slotList struct {
	call  slidingwindow.Call
	slots []slot
}

// begin returns the instant of the slot in which now is.
func (m *slotList) begin(now limit.Instant) int64 {
	t, w, n := int64(now)-int64(m.call.Phase), int64(m.call.Window), int64(m.call.Slots)
	switch m.call.Mode {
	case slidingwindow.Log:
		return int64(now)
	case slidingwindow.Buckets:
		start := floorInt(t, w)
		return int64(m.call.Phase) + start + limit.CeilDiv((t-start)*n/w*w, n)
	}
	return int64(m.call.Phase) + floorInt(t, w)
}

// floorInt returns the greatest multiple of w up to t.
func floorInt(t, w int64) int64 {
	floor := t / w * w
	if floor > t {
		floor -= w
	}
	return floor
}

// roll forgets the slots that no longer count at now.
func (m *slotList) roll(now limit.Instant) {
	var kept []slot
	for _, s := range m.slots {
		end := int64(s.at) + int64(m.call.Window)
		if m.call.Mode == slidingwindow.Counter {
			end += int64(m.call.Window)
		}
		if end > int64(now) {
			kept = append(kept, s)
		}
	}
	m.slots = kept
}

func (m *slotList) charge(now limit.Instant, n int64) (at limit.Instant) {
	m.roll(now)
	at = limit.Instant(m.begin(now))
	if last := len(m.slots) - 1; last >= 0 {
		full := m.call.Mode == slidingwindow.Log && int64(len(m.slots)) >= m.call.LogMaxEntries
		if m.slots[last].at == at || full {
			m.slots[last] = slot{at, m.slots[last].units + n}
			return at
		}
	}
	m.slots = append(m.slots, slot{at, n})
	return at
}

// take takes up to n units from the slots, the newest first. spare(i) is the most that slot i may
// lose.
func (m *slotList) take(n int64, spare func(i int) int64) (taken int64) {
	for i := len(m.slots) - 1; i >= 0; i-- {
		part := min(n-taken, max(0, spare(i)))
		m.slots[i].units -= part
		taken += part
	}
	var kept []slot
	for _, s := range m.slots {
		if s.units > 0 {
			kept = append(kept, s)
		}
	}
	m.slots = kept
	return taken
}

func (m *slotList) takeUnheld(now limit.Instant, n int64, held holds) (taken int64) {
	m.roll(now)
	return m.take(n, func(i int) int64 {
		at, after := m.slots[i].at, limit.MinInstant
		switch {
		case m.call.Mode != slidingwindow.Log:
			after = at - 1
		case i > 0:
			after = m.slots[i-1].at
		}
		return m.slots[i].units - held.held(after, at)
	})
}

func (m *slotList) giveBack(at limit.Instant, n int64) int64 {
	for i, s := range m.slots {
		if s.at == at || m.call.Mode == slidingwindow.Log && s.at > at {
			return m.take(n, func(j int) int64 {
				if i == j {
					return s.units
				}
				return 0
			})
		}
	}
	return 0
}

// holds are units that were charged and may be given back.
type holds []slot

func (h holds) held(after, at limit.Instant) (sum int64) {
	for _, s := range h {
		if after < s.at && s.at <= at {
			sum += s.units
		}
	}
	return sum
}

// TestSlotsAgreeWithTheModel makes random charges, gives back and takes back. After each step the
// value has the slots of the model.
func TestSlotsAgreeWithTheModel(t *testing.T) {
	given, taken, less := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		c := drawCall(rt)
		c.First, c.Even, c.Limit, c.Charge = false, false, 1<<40, slidingwindow.Force
		c.LogMaxEntries = rapid.SampledFrom([]int64{1, 2, 5, 1 << 40}).Draw(rt, "entries")
		m := slotList{call: c}
		var held holds
		var v []byte
		mode, now := slidingwindow.None, limit.Instant(rapid.Int64Range(-1000, 1000).Draw(rt, "start"))
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			now += limit.Instant(rapid.Int64Range(0, int64(c.Window)/2+1).Draw(rt, "step") *
				rapid.Int64Range(0, 1).Draw(rt, "moves"))
			n := rapid.Int64Range(1, 9).Draw(rt, "units")
			step := rapid.IntRange(0, 6).Draw(rt, "what")
			switch {
			case mode == slidingwindow.None || step < 4:
				c.Quantity = n
				var p slidingwindow.Plan
				require.NoError(rt, slidingwindow.Decide(mode, v, 0, now, &c, &p))
				v, mode = p.Apply(v, nil), c.Mode
				require.Equal(rt, m.charge(now, n), slidingwindow.Newest(mode, v))
				if rapid.Bool().Draw(rt, "hold") {
					held = append(held, slot{slidingwindow.Newest(mode, v), rapid.Int64Range(1, n).Draw(rt, "held")})
				}
			case step < 6 && len(held) > 0:
				i := rapid.IntRange(0, len(held)-1).Draw(rt, "which")
				got := slidingwindow.GiveBack(mode, v, held[i].at, held[i].units)
				require.Equal(rt, m.giveBack(held[i].at, held[i].units), got)
				held = append(held[:i], held[i+1:]...)
				given += int(got)
			default:
				n *= rapid.Int64Range(1, 5).Draw(rt, "times")
				got := slidingwindow.TakeUnheld(mode, v, now, n, held.held)
				require.Equal(rt, m.takeUnheld(now, n, held), got)
				taken += int(got)
				if got < n && len(m.slots) > 0 {
					less++
				}
			}
			require.NoError(rt, slidingwindow.Check(mode, v))
			require.Equal(rt, m.slots, slotsOf(mode, v))
			look := c
			look.Quantity = 0
			var p slidingwindow.Plan
			require.NoError(rt, slidingwindow.Decide(mode, v, 0, now, &look, &p))
			require.Equal(rt, p.Decision.ResetAfter, slidingwindow.Reset(mode, v, now))
			require.Equal(rt, p.Decision.ResetAfter == 0, slidingwindow.Reset(mode, v, now) == 0)
		}
	})
	require.Positive(t, given)
	require.Positive(t, taken)
	require.Positive(t, less, "held units stayed")
}

// TestGiveBackIsAsIfNeverCharged compares a limiter after a give-back with one that was charged less
// at that instant. Time goes back now and then.
func TestGiveBackIsAsIfNeverCharged(t *testing.T) {
	given := 0
	rapid.Check(t, func(rt *rapid.T) {
		c := drawCall(rt)
		c.Even, c.Limit, c.LogMaxEntries = false, 1<<40, 1<<41
		a, b := key{persistent: true}, key{persistent: true}
		now := limit.Instant(rapid.Int64Range(-1000, 1000).Draw(rt, "start"))
		steps := rapid.IntRange(1, 30).Draw(rt, "steps")
		at, extra := limit.Instant(0), int64(0)
		reserved := rapid.IntRange(0, steps-1).Draw(rt, "reserved")
		for i := range steps {
			now += limit.Instant(rapid.Int64Range(-int64(c.Window)/8, int64(c.Window)/3+1).Draw(rt, "step"))
			c.Quantity = rapid.Int64Range(1, 9).Draw(rt, "quantity")
			b.do(t, now, c)
			if i == reserved {
				extra = rapid.Int64Range(1, 9).Draw(rt, "extra")
				c.Quantity += extra
			}
			a.do(t, now, c)
			if i == reserved {
				at = slidingwindow.Newest(a.mode, a.value)
			}
		}
		if a.mode == slidingwindow.Log && slotsOf(a.mode, a.value)[0].at > at {
			return // the entry has expired
		}
		got := slidingwindow.GiveBack(a.mode, a.value, at, extra)
		if got > 0 {
			require.Equal(rt, extra, got)
		}
		given += int(got)
		require.Equal(rt, elements(b.mode, b.value), elements(a.mode, a.value))
		for range 10 {
			now += limit.Instant(rapid.Int64Range(0, int64(c.Window)/3+1).Draw(rt, "step"))
			c.Quantity = rapid.Int64Range(0, 9).Draw(rt, "quantity")
			require.Equal(rt, b.do(t, now, c), a.do(t, now, c))
		}
	})
	require.Positive(t, given)
}

// TestGiveBackOfAGoneSlot: units are not given to another slot than the one that got them.
func TestGiveBackOfAGoneSlot(t *testing.T) {
	values := map[slidingwindow.Mode][]byte{
		slidingwindow.Counter: value(20, 10, 5, 6),
		slidingwindow.Fixed:   value(20, 10, 5),
		slidingwindow.Buckets: value(20, 10, 1, 1, 2, 3, 4, 5),
		slidingwindow.Log:     value(10, 0, 2<<32, 12, 5, 20, 9),
	}
	want := map[slidingwindow.Mode]map[limit.Instant]int64{
		slidingwindow.Counter: {20: 5, 10: 6},
		slidingwindow.Fixed:   {20: 5},
		slidingwindow.Buckets: {20: 1, 22: 2, 14: 3, 16: 4, 18: 5},
		slidingwindow.Log:     {12: 5, 20: 4},
	}
	for mode, v := range values {
		for at := limit.Instant(-10); at < 50; at++ {
			units := want[mode][at]
			if mode == slidingwindow.Log && at < 12 {
				units = 5 // it may have been merged
			} else if mode == slidingwindow.Log && at < 20 && at > 12 {
				units = 4
			}
			require.Equal(t, units, slidingwindow.GiveBack(mode, bytes.Clone(v), at, 100), "%v %d", mode, at)
		}
		for _, at := range []limit.Instant{limit.MinInstant + 1, limit.MaxInstant} {
			if mode != slidingwindow.Log || at > 0 {
				require.Zero(t, slidingwindow.GiveBack(mode, bytes.Clone(v), at, 100), "%v %d", mode, at)
			}
		}
		for _, n := range []int64{0, -1, math.MinInt64} {
			same := bytes.Clone(v)
			require.Zero(t, slidingwindow.GiveBack(mode, same, 20, n))
			require.Equal(t, v, same)
		}
	}
	require.Zero(t, slidingwindow.GiveBack(slidingwindow.None, nil, 0, 1))
	require.Equal(t, limit.MaxInstant, slidingwindow.Newest(slidingwindow.None, nil))
}

// TestGiveBackMovesTheShorterSide gives back every entry of a ring that wraps around, in part and as
// a whole.
func TestGiveBackMovesTheShorterSide(t *testing.T) {
	for head := range int64(8) {
		for i := range 8 {
			for _, n := range []int64{1, 5, 6, 100} {
				w := append([]int64{1000, -17, 8<<32 | head}, make([]int64, 16)...)
				var want []slot
				for j := range int64(8) {
					at := 3 + 2*((head+j)%8)
					w[at], w[at+1] = 100+j, -17+6*(j+1)
					want = append(want, slot{limit.Instant(100 + j), 6})
				}
				v := value(w...)
				require.Equal(t, min(n, 6), slidingwindow.GiveBack(slidingwindow.Log, v, limit.Instant(100+i), n))
				require.NoError(t, slidingwindow.Check(slidingwindow.Log, v))
				if want[i].units -= min(n, 6); want[i].units == 0 {
					want = append(want[:i], want[i+1:]...)
				}
				require.Equal(t, want, slotsOf(slidingwindow.Log, v))
			}
		}
	}
}

// TestEmptyLog: a log without entries is an unused limiter.
func TestEmptyLog(t *testing.T) {
	c := slidingwindow.Call{Mode: slidingwindow.Log, Limit: 9, Window: 10, Quantity: 3}
	empty := func() *key {
		k := &key{}
		_, err := k.call(t, 5, &c)
		require.NoError(t, err)
		require.Equal(t, int64(3), slidingwindow.GiveBack(k.mode, k.value, 5, 3))
		require.NoError(t, slidingwindow.Check(k.mode, k.value))
		require.Empty(t, slotsOf(k.mode, k.value))
		require.Zero(t, slidingwindow.Reset(k.mode, k.value, 5))
		require.Equal(t, limit.MaxInstant, slidingwindow.Newest(k.mode, k.value))
		require.Zero(t, slidingwindow.GiveBack(k.mode, k.value, 5, 3))
		return k
	}
	for quantity := int64(-2); quantity <= 10; quantity++ {
		for charge := slidingwindow.Whole; charge <= slidingwindow.Force; charge++ {
			step := c
			step.Quantity, step.Charge = quantity, charge
			var fresh key
			want, err := fresh.call(t, 6, &step)
			require.NoError(t, err)
			k := empty()
			got, err := k.call(t, 6, &step)
			require.NoError(t, err)
			require.Equal(t, want, got)
			if k.plan.Action == slidingwindow.Store {
				require.Equal(t, slotsOf(fresh.mode, fresh.value), slotsOf(k.mode, k.value))
			}
		}
	}
	k := empty()
	step := c
	step.Quantity = -1
	_, err := k.call(t, 6, &step)
	require.NoError(t, err)
	require.Equal(t, slidingwindow.Delete, k.plan.Action, "a refund drops a limiter without units")
	k = empty()
	ch, ok := recorded(t, k, 6, &c)
	require.True(t, ok)
	require.NotEmpty(t, ch.delta)
	replayed := empty()
	ch.apply(t, replayed)
	require.Equal(t, []slot{{6, 3}}, slotsOf(replayed.mode, replayed.value))
	fields := 0
	require.Zero(t, slidingwindow.Describe(k.mode, empty().value, 5, func(string, int64) { fields++ }))
	require.Equal(t, 5, fields)
}

func TestClear(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		k, now, c := live(rt, t)
		if k.mode == slidingwindow.None {
			return
		}
		before := slidingwindow.Stored(k.mode, k.value)
		k.value = slidingwindow.Clear(k.mode, k.value)
		require.NoError(rt, slidingwindow.Check(k.mode, k.value))
		require.Equal(rt, before, slidingwindow.Stored(k.mode, k.value))
		require.Empty(rt, slotsOf(k.mode, k.value))
		require.Zero(rt, slidingwindow.Reset(k.mode, k.value, now))
		require.Zero(rt, slidingwindow.Reset(k.mode, k.value, now))
		c.First, c.Even = false, false
		c.Phase = before.Phase
		var fresh key
		require.Equal(rt, fresh.do(t, now, c), k.do(t, now, c))
	})
	v := slidingwindow.Clear(slidingwindow.Log, append(value(10, 5, 3<<32|1), make([]byte, 16*64)...))
	require.Equal(t, value(10, 0, 0, 0, 0, 0, 0), v)
	require.Equal(t, value(10, 0, 0, 0, 0), slidingwindow.Clear(slidingwindow.Log, value(10, 5, 1<<32, 7, 8)))
}

// TestStoredContinuesTheWindows: no call with the parameters of Stored converts the value, whatever
// the instant is.
func TestStoredContinuesTheWindows(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	check := func(mode slidingwindow.Mode, v []byte, now limit.Instant) {
		c := slidingwindow.Stored(mode, v)
		c.Charge, c.Quantity, c.LogMaxEntries = slidingwindow.Force, 1, math.MaxInt64
		require.NoError(t, c.Validate())
		for _, c.First = range []bool{false, mode != slidingwindow.Log} {
			var p slidingwindow.Plan
			err := slidingwindow.Decide(mode, v, 0, now, &c, &p)
			require.False(t, p.Foreign, "%v at %d", mode, now)
			if err != nil {
				require.ErrorIs(t, err, limit.ErrOverflow)
			}
		}
		c.LogMaxEntries = 1
		var p slidingwindow.Plan
		if err := slidingwindow.Decide(mode, v, 0, now, &c, &p); err == nil {
			require.Equal(t, slidingwindow.Store, p.Action)
			require.NoError(t, slidingwindow.Check(mode, p.Apply(bytes.Clone(v), nil)))
		}
	}
	for mode, values := range stored {
		for _, v := range values {
			for _, now := range []limit.Instant{limit.MinInstant, -1, 0, 1, 1e18, 1e18 + 1e9, limit.MaxInstant} {
				check(mode, v, now)
			}
			for range 100 {
				check(mode, v, limit.Instant(random.Uint64()))
			}
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		k, now, _ := live(rt, t)
		if k.mode != slidingwindow.None {
			check(k.mode, k.value, now+limit.Instant(rapid.Int64Range(-50, 300).Draw(rt, "later")))
		}
	})
}

// TestTakeUnheldIsARefund: without holds, TakeUnheld takes what a call with a negative quantity
// takes.
func TestTakeUnheldIsARefund(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		k, now, c := live(rt, t)
		now += limit.Instant(rapid.Int64Range(-50, 50).Draw(rt, "last step"))
		if k.mode == slidingwindow.None || k.expiry <= now {
			return
		}
		c.Quantity = -rapid.Int64Range(0, 20).Draw(rt, "refund")
		v := bytes.Clone(k.value)
		none := func(limit.Instant, limit.Instant) int64 { return -1 }
		taken := slidingwindow.TakeUnheld(k.mode, v, now, -c.Quantity, none)
		require.LessOrEqual(rt, taken, -c.Quantity)
		if taken < -c.Quantity {
			require.Zero(rt, slidingwindow.Reset(k.mode, v, now))
		}
		if c.Quantity == 0 {
			return
		}
		was := k.mode
		k.do(t, now, c)
		if k.mode == slidingwindow.None {
			require.Zero(rt, slidingwindow.Reset(was, v, now))
			return
		}
		require.Equal(rt, elements(k.mode, k.value), elements(k.mode, v))
	})
}

// TestGivingAllocatesNothing holds for all functions that only change a value.
func TestGivingAllocatesNothing(t *testing.T) {
	for _, mode := range modes {
		var k key
		c := slidingwindow.Call{Mode: mode, Limit: 1 << 40, Window: 1000, Slots: 100, Quantity: 3, LogMaxEntries: 1 << 41}
		if mode == slidingwindow.Calendar {
			c.Window, c.Calendar.Unit = 0, calendar.Day
		}
		for now := range limit.Instant(200) {
			_, err := k.call(t, now, &c)
			require.NoError(t, err)
		}
		v, now, sink := k.value, limit.Instant(200), int64(0)
		h := holds{{150, 2}}
		require.Zero(t, testing.AllocsPerRun(20, func() {
			at := slidingwindow.Newest(mode, v)
			sink += slidingwindow.GiveBack(mode, v, at, 1)
			sink += slidingwindow.GiveBack(mode, v, 100, 2)
			sink += slidingwindow.TakeUnheld(mode, v, now, 3, h.held)
			sink += int64(slidingwindow.Reset(mode, v, now))
			stored := slidingwindow.Stored(mode, v)
			sink += int64(stored.Window) + int64(stored.Calendar.From)
			if slidingwindow.Reset(mode, v, now) == 0 {
				panic("unused")
			}
			now++
		}), "%v", mode)
		require.NotZero(t, sink)
	}
}

// FuzzGive: whatever a valid value has, and whatever the instants are, it stays valid, and loses the
// units that are returned.
func FuzzGive(f *testing.F) {
	for mode, values := range stored {
		for _, v := range values {
			f.Add(uint8(mode), v, int64(1e18), int64(1), int64(1e18+1e8), int64(1))
			f.Add(uint8(mode), v, int64(math.MinInt64), int64(math.MaxInt64), int64(math.MaxInt64), int64(0))
			f.Add(uint8(mode), v, int64(math.MaxInt64), int64(-1), int64(math.MinInt64), int64(-1))
		}
	}
	f.Fuzz(func(t *testing.T, mode uint8, v []byte, at, n, now, held int64) {
		m := slidingwindow.Mode(mode)
		if slidingwindow.Check(m, v) != nil {
			return
		}
		sum := func() (sum uint64) {
			for _, s := range slotsOf(m, v) {
				sum += uint64(s.units)
			}
			return sum
		}
		v = bytes.Clone(v)
		newest := slidingwindow.Newest(m, v)
		before := sum()
		replayed := bytes.Clone(v)
		given := slidingwindow.GiveBack(m, v, limit.Instant(at), n)
		delta, ok := slidingwindow.Diff(m, nil, replayed, v)
		require.NoError(t, slidingwindow.Check(m, v))
		require.Equal(t, before-uint64(given), sum())
		require.LessOrEqual(t, given, max(0, n))
		if ok {
			replayed, err := slidingwindow.ApplyDelta(m, replayed, nil, delta)
			require.NoError(t, err)
			require.Equal(t, elements(m, v), elements(m, replayed))
		}
		_ = slidingwindow.GiveBack(m, v, newest, n)

		slidingwindow.TakeUnheld(m, v, limit.Instant(now), 0, nil)
		require.NoError(t, slidingwindow.Check(m, v))
		before = sum()
		last := limit.MaxInstant
		taken := slidingwindow.TakeUnheld(m, v, limit.Instant(now), n, func(after, at limit.Instant) int64 {
			if at > last || after > at {
				t.Errorf("(%d, %d] after %d", after, at, last)
			}
			last = at
			return held
		})
		require.NoError(t, slidingwindow.Check(m, v))
		require.Equal(t, before-uint64(taken), sum())
		require.LessOrEqual(t, taken, max(0, n))

		v = slidingwindow.Clear(m, v)
		require.NoError(t, slidingwindow.Check(m, v))
		require.Zero(t, slidingwindow.Reset(m, v, limit.Instant(now)))
	})
}

// TestGiveBackAll compares a give-back to several slots of a LOG with one after another.
func TestGiveBackAll(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		k := key{}
		for now := range limit.Instant(20) {
			c := slidingwindow.Call{Mode: slidingwindow.Log, Limit: 1000, Window: 1000, Quantity: 1 + r.Int64N(9)}
			_, err := k.call(t, now, &c)
			require.NoError(t, err)
		}
		each := bytes.Clone(k.value)
		var gives []slidingwindow.Given
		for at := range limit.Instant(20) {
			if r.IntN(2) == 0 {
				gives = append(gives, slidingwindow.Given{Slot: at, Units: r.Int64N(12)})
			}
		}
		slidingwindow.GiveBackAll(k.value, gives)
		for _, g := range gives {
			slidingwindow.GiveBack(slidingwindow.Log, each, g.Slot, g.Units)
		}
		require.Equal(t, elements(slidingwindow.Log, each), elements(slidingwindow.Log, k.value))
		require.NoError(t, slidingwindow.Check(slidingwindow.Log, k.value))
	}
}
