package slidingwindow_test

import (
	"testing"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/stretchr/testify/require"
)

// row is one call of a timeline and its reply.
type row struct {
	at       time.Duration
	quantity int64
	want     five
}

// play makes the calls of rows on a new key.
func play(t *testing.T, c slidingwindow.Call, reply func(limit.Decision) five, rows []row) {
	t.Helper()
	var k key
	for i, r := range rows {
		c.Quantity = r.quantity
		d, err := k.call(t, at(r.at), &c)
		require.NoError(t, err)
		require.Equal(t, r.want, reply(d), "row %d", i)
	}
}

func TestCounterWorked(t *testing.T) {
	c := slidingwindow.Call{Limit: 10, Window: 1000 * ms, Mode: slidingwindow.Counter}
	play(t, c, inMillis, []row{
		{0, 1, five{0, 10, 9, -1, 1001}},
		{100 * ms, 2, five{0, 10, 7, -1, 1567}},
		{200 * ms, 3, five{0, 10, 4, -1, 1634}},
		{500 * ms, 5, five{1, 10, 4, 501, 1334}},
		{1000 * ms, 2, five{0, 10, 2, -1, 1501}},
		{1200 * ms, 5, five{1, 10, 4, 134, 1301}},
		{1500 * ms, 5, five{0, 10, 0, -1, 1358}},
		{3000 * ms, 10, five{0, 10, 0, -1, 1901}},
	})
	c.Window = 10 * time.Second
	play(t, c, inSeconds, []row{
		{0, 10, five{0, 10, 0, -1, 20}},
		{0, 1, five{1, 10, 0, 11, 20}},
		{10 * time.Second, 1, five{1, 10, 0, 1, 10}},
		// The retry was 1 ns, rounded up: the full weight applies just at the edge.
		{10*time.Second + 1, 0, five{0, 10, 1, -1, 9}},
		{11 * time.Second, 1, five{0, 10, 0, -1, 10}},
		{11*time.Second + 1, 1, five{0, 10, 0, -1, 14}},
	})
	c.Limit, c.Window = 100, time.Minute
	play(t, c, inSeconds, []row{
		{30 * time.Second, 86, five{0, 100, 14, -1, 90}},
		{60 * time.Second, 12, five{0, 100, 2, -1, 116}},
		// 86 units in the previous window, 12 in this one, 15 s after its beginning: 64.5 + 12.
		{75 * time.Second, 1, five{0, 100, 23, -1, 101}},
	})
}

func TestFixedWorked(t *testing.T) {
	c := slidingwindow.Call{Limit: 3, Window: 10 * time.Second, Mode: slidingwindow.Fixed}
	play(t, c, inSeconds, []row{
		{7 * time.Second, 2, five{0, 3, 1, -1, 3}},
		{9 * time.Second, 2, five{1, 3, 1, 1, 1}},
		{9 * time.Second, 1, five{0, 3, 0, -1, 1}},
		{9 * time.Second, 1, five{1, 3, 0, 1, 1}},
		{10 * time.Second, 3, five{0, 3, 0, -1, 10}},
		{12 * time.Second, 4, five{1, 3, 0, -1, 8}},
	})
	c.First = true
	play(t, c, inSeconds, []row{
		{7 * time.Second, 2, five{0, 3, 1, -1, 10}},
		{9 * time.Second, 1, five{0, 3, 0, -1, 8}},
		{12 * time.Second, 1, five{1, 3, 0, 5, 5}},
		{16 * time.Second, 1, five{1, 3, 0, 1, 1}},
		{17 * time.Second, 1, five{0, 3, 2, -1, 10}},
	})
}

func TestLogWorked(t *testing.T) {
	play(t, slidingwindow.Call{Limit: 10, Window: 1000 * ms, Mode: slidingwindow.Log}, inMillis, []row{
		{0, 4, five{0, 10, 6, -1, 1000}},
		{500 * ms, 6, five{0, 10, 0, -1, 1000}},
		{600 * ms, 5, five{1, 10, 0, 900, 900}},
		{600 * ms, 11, five{1, 10, 0, -1, 900}},
		{999 * ms, 1, five{1, 10, 0, 1, 501}},
		{1000 * ms, 4, five{0, 10, 0, -1, 1000}},
		{1000 * ms, 1, five{1, 10, 0, 500, 1000}},
		{1500 * ms, 6, five{0, 10, 0, -1, 1000}},
		{1500 * ms, 0, five{0, 10, 0, -1, 1000}},
	})
}

func TestBucketsWorked(t *testing.T) {
	play(t, slidingwindow.Call{Limit: 10, Window: 1000 * ms, Mode: slidingwindow.Buckets, Slots: 5}, inMillis, []row{
		{0, 4, five{0, 10, 6, -1, 1000}},
		{250 * ms, 5, five{0, 10, 1, -1, 950}},
		{900 * ms, 2, five{1, 10, 1, 100, 300}},
		{1000 * ms, 2, five{0, 10, 3, -1, 1000}},
		{1199 * ms, 4, five{1, 10, 3, 1, 801}},
	})
}

// TestRussellLuoWorked is the sequence of that limiter's own tests: 10 per second.
func TestRussellLuoWorked(t *testing.T) {
	var k key
	for _, r := range []struct {
		at       time.Duration
		quantity int64
		allowed  bool
	}{
		{0, 1, true},
		{100 * ms, 2, true},
		{200 * ms, 3, true},
		{500 * ms, 5, false}, // 6 + 5
		{1000 * ms, 2, true}, // 6 * 1
		{1200 * ms, 5, false},
		{1500 * ms, 5, true},
		{3000 * ms, 10, true},
	} {
		d, err := k.call(t, at(r.at), &slidingwindow.Call{
			Limit: 10, Window: time.Second, Mode: slidingwindow.Counter, Quantity: r.quantity,
		})
		require.NoError(t, err)
		require.Equal(t, r.allowed, d.Allowed(), "at %v", r.at)
	}
}

// TestMennanovWorked is the sequence of that sliding window's own tests: refused calls count, and
// after waiting for the time in a refusal the next call passes.
func TestMennanovWorked(t *testing.T) {
	var k key
	c := slidingwindow.Call{Limit: 2, Window: time.Second, Mode: slidingwindow.Counter, Quantity: 1, Penalize: true}
	now := at(0)
	for i, allowed := range []bool{true, true, false, true, false, true} {
		d, err := k.call(t, now, &c)
		require.NoError(t, err)
		require.Equal(t, allowed, d.Allowed(), "call %d", i)
		if !allowed {
			now = now.Add(d.RetryAfter)
		}
	}
}
