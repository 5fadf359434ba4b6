package slidingwindow_test

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/stretchr/testify/require"
)

// value encodes words as the codec does.
func value(words ...int64) []byte {
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, uint64(w))
	}
	return b
}

// stored has valid values of each mode, as a file may contain them.
var stored = map[slidingwindow.Mode][][]byte{
	slidingwindow.Counter: {
		value(1e18, 1e9, 3, 4), value(math.MinInt64, 1, math.MaxInt64, math.MaxInt64), value(0, 1<<61, 0, 0),
	},
	slidingwindow.Fixed: {value(1e18, 1e9, 3), value(math.MaxInt64, 1<<61, math.MaxInt64)},
	slidingwindow.Log: {
		value(1e9, 0, 1<<32, 1e18, 1),             // room for one, and it is taken
		value(1e9, 0, 1<<32|1, 0, 0, 1e18, 1),     // at the second position
		value(1e9, -1, 2<<32|1, 1e18+1, 5, 10, 1), // wrapped around, its total as well
		value(1<<61, 7, 1<<32, math.MinInt64, 8, math.MaxInt64, 2),
		value(1e9, 9, 1, 1e18, 1, 1e18, 1), // no entries
	},
	slidingwindow.Calendar: {
		append(value(1e18, 1e15, 3), "\x03\x0f\x00Europe/Berlin"...), append(value(0, 1<<61, math.MaxInt64), 1, 0, 0),
		append(value(math.MinInt64, 1, 0), "\x04\xe5\x00Moon/Crater"...),
	},
	slidingwindow.Buckets: {
		value(1e18, 1e9, 1, 3, 4), value(-5, 1<<61, 0, math.MaxInt64, 0, 0),
	},
}

// TestLayout pins the bytes in files.
func TestLayout(t *testing.T) {
	c := slidingwindow.Call{Limit: 9, Window: 16, Slots: 2, Quantity: 3}
	want := map[slidingwindow.Mode]string{
		slidingwindow.Counter: "4000000000000000 1000000000000000 0300000000000000 0000000000000000",
		slidingwindow.Fixed:   "4000000000000000 1000000000000000 0300000000000000",
		slidingwindow.Log: "1000000000000000 0000000000000000 0000000001000000" +
			" 4900000000000000 0300000000000000 0000000000000000 0000000000000000",
		slidingwindow.Buckets: "4000000000000000 1000000000000000 0100000000000000 0000000000000000 0300000000000000",
	}
	for mode, text := range want {
		var k key
		c.Mode = mode
		k.do(t, 0x49, c)
		require.Equal(t, strings.ReplaceAll(text, " ", ""), hex.EncodeToString(k.value), "%v", mode)
	}
}

func TestCheckTakesSoundValues(t *testing.T) {
	for mode, values := range stored {
		for i, v := range values {
			require.NoError(t, slidingwindow.Check(mode, v), "%v %d", mode, i)
		}
	}
}

func TestCheckRefusesCorruptValues(t *testing.T) {
	corrupt := map[slidingwindow.Mode][][]byte{
		slidingwindow.None: {nil, value(0, 1, 1)},
		99:                 {value(0, 1, 1)},
		slidingwindow.Counter: {
			nil, value(0, 1, 1), value(0, 1, 1, 1, 1),
			value(0, 0, 1, 1), value(0, -1, 1, 1), value(0, 1<<61+1, 1, 1), value(0, 1, -1, 1), value(0, 1, 1, -1),
		},
		slidingwindow.Fixed: {nil, value(0, 1), value(0, 0, 1), value(0, 1, -1), value(0, 1<<61+1, 1)},
		slidingwindow.Calendar: {
			nil, value(0, 1, 1), append(value(0, 1, 1), 1, 0), append(value(0, 1, 1), 0, 0, 0), append(value(0, 1, 1), 5, 1, 0),
			append(value(0, 0, 1), 1, 0, 0), append(value(0, 1, -1), 1, 0, 0), append(value(0, 1<<61+1, 1), 1, 0, 0),
			append(value(0, 1, 1), 1, 0xa0, 5), append(value(0, 1, 1), 2, 8, 0), append(value(0, 1, 1), 3, 0, 0),
			append(value(0, 1, 1), 3, 32, 0), append(value(0, 1, 1), 4, 230, 0), append(value(0, 1, 1), 4, 65, 0),
			append(value(0, 1, 1), "\x01\x00\x00Europe Berlin"...),
			append(value(0, 1, 1), "\x01\x00\x00"+strings.Repeat("z", 65)...),
		},
		slidingwindow.Log: {
			nil, value(1, 0, 1<<32), value(1, 0, 1<<32, 5), // no ring, half an entry
			value(0, 0, 1<<32, 5, 1), value(1<<61+1, 0, 1<<32, 5, 1), // window
			value(1, 0, 1, 5, 1),                   // no entries, and they start beyond the ring
			value(1, 0, 2<<32, 5, 1),               // more than there is room for
			value(1, 0, 1<<32|1, 5, 1),             // starts beyond the ring
			value(1, 0, 1<<32, 5, 1, 6, 2, 7, 3),   // a ring of three
			value(1, 1, 1<<32, 5, 1),               // an entry of nothing
			value(1, 0, 2<<32, 5, 1, 5, 2),         // two entries of one instant
			value(1, 0, 2<<32, 6, 1, 5, 2),         // out of order
			value(1, 0, 2<<32, 5, 2, 6, 1),         // totals that fall
			value(1, 0, 1<<32, 5, math.MinInt64),   // one count beyond int64
			value(1, 0, 2<<32, 5, 1<<62, 6, -1),    // a sum beyond int64
			value(1, 0, 2<<32, 5, -1<<63+1, 6, -2), // both
		},
		slidingwindow.Buckets: {
			nil, value(0, 1, 0), value(0, 1, 0, 1), value(0, 1, 0, 1, 1)[:39],
			value(0, 0, 0, 1, 1), value(0, 1<<61+1, 0, 1, 1), value(0, 1, 2, 1, 1), value(0, 1, -1, 1, 1),
			value(0, 1, 0, 1, -1), value(0, 1, 0, 1, math.MaxInt64), value(append([]int64{0, 1, 0}, make([]int64, 1001)...)...),
		},
	}
	for mode, values := range corrupt {
		for i, v := range values {
			require.ErrorIs(t, slidingwindow.Check(mode, v), slidingwindow.ErrCorrupt, "%v %d", mode, i)
		}
	}
}

// TestLogWrapsAround refunds from and adds to a ring that wraps around and whose totals have passed
// 2^64.
func TestLogWrapsAround(t *testing.T) {
	k := key{
		mode: slidingwindow.Log, persistent: true,
		value: value(1e9, -4, 3<<32|3, 1100e6, 3, 1200e6, 8, 0, 0, 1000e6, -1),
	}
	c := slidingwindow.Call{Mode: slidingwindow.Log, Limit: 20, Window: time.Second}
	require.NoError(t, slidingwindow.Check(k.mode, k.value))
	require.Equal(t, five{0, 20, 8, -1, 950}, k.do(t, at(1250*ms), c), "3, 4 and 5 units")
	c.Quantity = -6
	require.Equal(t, five{0, 20, 14, -1, 850}, k.do(t, at(1250*ms), c), "all of the last and 1 before it")
	c.Quantity = 18
	require.Equal(t, five{1, 20, 14, 850, 850}, k.do(t, at(1250*ms), c))
	c.Quantity = 17
	require.Equal(t, five{1, 20, 14, 750, 850}, k.do(t, at(1250*ms), c))
	c.Quantity = 2
	require.Equal(t, five{0, 20, 12, -1, 1000}, k.do(t, at(1250*ms), c))
	require.Equal(t, five{0, 20, 13, -1, 1000}, k.do(t, at(2000*ms), c))
}

func TestDescribe(t *testing.T) {
	type fields map[string]int64
	want := map[slidingwindow.Mode]fields{
		slidingwindow.Counter: {"window-ns": 1e9, "start-ns": 2e9, "current": 0, "previous": 4, "used": 3, "reset-ms": 651},
		slidingwindow.Fixed:   {"window-ns": 1e9, "start-ns": 1e9, "used": 0, "reset-ms": 0},
		slidingwindow.Log:     {"window-ns": 1e9, "entries": 1, "capacity": 2, "used": 4, "reset-ms": 800},
		slidingwindow.Buckets: {"window-ns": 1e9, "start-ns": 2e9, "slots": 4, "slot": 0, "slot-used": 0, "used": 4, "reset-ms": 650},
	}
	for mode, fields := range want {
		var k key
		c := slidingwindow.Call{Mode: mode, Limit: 9, Window: time.Second, Slots: 4, Quantity: 4}
		k.do(t, at(1900*ms), c)
		got := map[string]int64{}
		slidingwindow.Describe(mode, k.value, at(2100*ms), func(field string, value int64) { got[field] = value })
		require.Equal(t, map[string]int64(fields), got, "%v", mode)
	}
	slidingwindow.Describe(slidingwindow.None, nil, 0, func(string, int64) { t.Error("nothing to describe") })
}

func TestModeWords(t *testing.T) {
	words := map[slidingwindow.Mode]string{
		slidingwindow.None: "none", slidingwindow.Counter: "counter", slidingwindow.Fixed: "fixed",
		slidingwindow.Log: "log", slidingwindow.Buckets: "buckets", slidingwindow.Calendar: "calendar", 9: "mode 9",
	}
	for mode, word := range words {
		require.Equal(t, word, mode.String())
	}
}

// FuzzDecide: Decide accepts all bytes that pass Check, and what it stores passes Check again.
func FuzzDecide(f *testing.F) {
	for mode, values := range stored {
		for _, v := range values {
			f.Add(uint8(mode), v, int64(1e18), uint8(mode), int64(10), int64(1e9), int64(1), uint16(2), uint8(0), int64(0))
			f.Add(uint8(mode), v, int64(1e18+1e9), uint8(slidingwindow.Buckets), int64(10), int64(1e9), int64(-1), uint16(5), uint8(1), int64(7))
			f.Add(uint8(mode), v, int64(0), uint8(mode), int64(1), int64(1<<61), int64(5), uint16(1000), uint8(4), int64(1<<60))
		}
	}
	f.Fuzz(func(t *testing.T, mode uint8, v []byte, now int64, callMode uint8, most, window, quantity int64, slots uint16, options uint8, phase int64) {
		m := slidingwindow.Mode(mode)
		c := slidingwindow.Call{
			Mode: slidingwindow.Mode(callMode), Limit: most, Window: time.Duration(window), Quantity: quantity,
			Slots: int(slots), Phase: time.Duration(phase), LogMaxEntries: 4,
			First: options&1 != 0, Even: options&2 != 0, Penalize: options&4 != 0,
			Charge: slidingwindow.Charge(options >> 3 & 3),
		}
		if c.Validate() != nil {
			return
		}
		if m == slidingwindow.None {
			v = nil
		} else if slidingwindow.Check(m, v) != nil {
			return
		}
		if m != slidingwindow.None {
			slidingwindow.Describe(m, v, limit.Instant(now), func(string, int64) {})
		}
		k := key{mode: m, value: append([]byte(nil), v...), persistent: true}
		d, err := k.call(t, limit.Instant(now), &c)
		if err != nil {
			require.ErrorIs(t, err, limit.ErrOverflow)
			return
		}
		require.GreaterOrEqual(t, d.Remaining, int64(0))
		require.LessOrEqual(t, d.Remaining, d.Limit)
		require.GreaterOrEqual(t, d.Refused, int64(0))
		require.GreaterOrEqual(t, d.ResetAfter, time.Duration(0))
		require.NotZero(t, d.RetryAfter)
		require.GreaterOrEqual(t, d.RetryAfter, limit.NoRetry)
	})
}
