package replication

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/persistence"
)

// river is a stream that keeps the bytes that it gets.
type river struct{ b []byte }

func (r *river) Write(p []byte) { r.b = append(r.b, p...) }
func (r *river) Offset() uint64 { return 100 + uint64(len(r.b)) }

// still is a log with a fixed position.
type still struct {
	Log
	at uint64
}

func (s *still) Position() uint64 { return s.at }

func effects(n int) []byte {
	b := make([]byte, 8+n)
	b[0], b[8] = byte(n), persistence.FrameEffects
	return b
}

func TestTapTellsOffsets(t *testing.T) {
	r, log := &river{}, &still{at: 50}
	tp := newTap(log, r, func() {})
	tp.begin(40)
	require.Equal(t, uint64(100), tp.offset(40))
	require.Equal(t, uint64(110), tp.reached(), "what is not written yet")
	require.Equal(t, uint64(60), tp.offset(0))
	tp.Wrote([]byte("01234"), 0)
	tp.Wrote([]byte("56789"), 50)
	require.Equal(t, uint64(110), tp.offset(50))
	log.at = 1000
	tp.Gap()
	tp.Wrote([]byte("x"), 1000)
	require.Equal(t, uint64(111), tp.offset(1000), "positions were passed over")
	require.Equal(t, uint64(111), tp.reached())
	require.Zero(t, tp.offset(0), "before the history")
}

func TestSealedTap(t *testing.T) {
	gaps := 0
	start := func() (*tap, *river) {
		gaps = 0
		r := &river{}
		tp := newTap(&still{}, r, func() { gaps++ })
		tp.begin(0)
		return tp, r
	}
	clock := append([]byte{2, 0, 0, 0, 0, 0, 0, 0, persistence.FrameClock}, 0)

	t.Run("keeps back and goes on", func(t *testing.T) {
		tp, r := start()
		tp.Wrote([]byte("a"), 1)
		tp.seal()
		require.True(t, tp.isSealed())
		tp.Wrote(clock, 1+uint64(len(clock)))
		require.Equal(t, "a", string(r.b))
		require.False(t, tp.changed(), "time is no change")
		tp.open()
		require.Equal(t, "a"+string(clock), string(r.b))
		require.Equal(t, r.Offset(), tp.offset(1+uint64(len(clock))))
		tp.Wrote([]byte("b"), 12)
		require.Equal(t, "b", string(r.b[len(r.b)-1:]))
		require.Zero(t, gaps)
	})
	t.Run("waits for the end of a write", func(t *testing.T) {
		tp, r := start()
		tp.Wrote([]byte("a"), 0)
		tp.seal()
		require.False(t, tp.isSealed())
		tp.Wrote([]byte("b"), 2)
		require.True(t, tp.isSealed())
		tp.Wrote([]byte("c"), 3)
		require.Equal(t, "ab", string(r.b))
	})
	t.Run("notices effects", func(t *testing.T) {
		tp, _ := start()
		tp.seal()
		tp.Wrote(clock, 10)
		tp.Wrote(effects(3), 21)
		require.True(t, tp.changed())
	})
	t.Run("notices what it cannot read", func(t *testing.T) {
		tp, _ := start()
		tp.seal()
		tp.Wrote(clock[:5], 5)
		require.True(t, tp.changed())
	})
	t.Run("is bounded", func(t *testing.T) {
		tp, r := start()
		tp.seal()
		tp.Wrote(make([]byte, maxHeld), 1)
		require.Zero(t, gaps)
		tp.Wrote([]byte("x"), 2)
		require.True(t, tp.changed())
		tp.open()
		require.Equal(t, 1, gaps, "a new history")
		require.Empty(t, r.b)
		require.Equal(t, r.Offset(), tp.offset(2), "what was lost has no place in it")
	})
	t.Run("gap", func(t *testing.T) {
		tp, r := start()
		tp.seal()
		tp.Wrote(clock, 10)
		tp.Gap()
		require.Zero(t, gaps, "not yet")
		require.True(t, tp.changed())
		tp.Wrote(nil, 1000)
		tp.open()
		require.Equal(t, 1, gaps)
		require.Empty(t, r.b)
		require.Equal(t, r.Offset(), tp.offset(1000))
		tp.Gap()
		require.Equal(t, 2, gaps)
	})
}

func TestDurability(t *testing.T) {
	var d durability
	_, known := d.durable(0, 0)
	require.False(t, known)
	d.appended(10)
	_, known = d.durable(9, 100)
	require.False(t, known)
	d.appended(20)
	safe, known := d.durable(15, 200)
	require.True(t, known)
	require.Equal(t, uint64(100), safe, "what was appended up to 10 is at most 100")
	safe, _ = d.durable(19, 300)
	require.Equal(t, uint64(100), safe)
	safe, _ = d.durable(20, 300)
	require.Equal(t, uint64(200), safe)
	d.forget()
	_, known = d.durable(99, 400)
	require.False(t, known, "of another history")
}
