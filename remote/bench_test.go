package remote

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
)

// still is an engine with one value that answers before its methods return, and a clock that stands
// still.
type still struct {
	raw  []byte
	keep bool // it takes no write
}

func (s *still) Get(_ []byte, done func([]byte, error)) { done(s.raw, nil) }

func (s *still) Swap(w Write, done func(bool, []byte, error)) {
	if !s.keep {
		s.raw = w.New
	}
	done(true, nil, nil)
}

func (*still) SwapAll([]Write, func(bool, [][]byte, error)) {}
func (*still) Slot([]byte) int                              { return 0 }
func (*still) Now() limit.Instant                           { return epoch }
func (*still) Elapsed() time.Duration                       { return 0 }
func (*still) UpTo(time.Duration) time.Duration             { return 0 }
func (*still) Number() uint32                               { return 1 }

func (*still) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return time.AfterFunc(d, f).Stop
}

// BenchmarkDecide measures the store without an engine, for one call, and for 32 that are submitted
// at once and decided one after another.
func BenchmarkDecide(b *testing.B) {
	for name, c := range map[string]struct {
		asks int
		most int64
	}{"admitted": {1, 1 << 40}, "refused": {1, 1}, "admitted 32": {32, 1 << 40}, "refused 32": {32, 1}} {
		b.Run(name, func(b *testing.B) {
			e := new(still)
			s := newStore(e, e, &refusing{}, bounds())
			asks := make([]*decide.Ask, c.asks)
			for i := range asks {
				asks[i] = take(b, "k", c.most, 1)
			}
			done := func() {}
			b.ReportAllocs()
			for b.Loop() {
				s.Submit(asks, false, done)
			}
			require.NoError(b, asks[0].Err)
			b.ReportMetric(float64(b.Elapsed())/float64(b.N*c.asks), "ns/decision")
		})
	}
}

// TestADecisionAllocatesLittle: only the value and the data of a batch are allocated.
func TestADecisionAllocatesLittle(t *testing.T) {
	e := new(still)
	s := newStore(e, e, &refusing{}, bounds())
	asks := []*decide.Ask{take(t, "k", 1<<40, 1)}
	require.LessOrEqual(t, testing.AllocsPerRun(1000, func() { s.Submit(asks, false, func() {}) }), 5.0)
}
