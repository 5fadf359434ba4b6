package tokenbucket_test

import (
	"testing"

	"github.com/cellserver/cellserver/tokenbucket"
	"github.com/stretchr/testify/require"
)

// busy returns a call of a mode that is still admitted when it is made every 10 ms.
func busy(mode tokenbucket.Mode) tokenbucket.Call {
	return with(call(mode, 100, 100, second), warmup(second, 3), wait(second))
}

// TestDecideAllocatesNothing covers decisions and their effects, for admitted, refused and
// converted calls.
func TestDecideAllocatesNothing(t *testing.T) {
	for _, mode := range allModes {
		var p tokenbucket.Plan
		value, current, now := make([]byte, 0, 32), tokenbucket.None, epoch
		calls := []tokenbucket.Call{
			busy(mode), with(busy(mode), quantity(99)), with(busy(mode), quantity(-1)),
			with(busy(mode), quantity(0)), call(tokenbucket.Greedy, 9, 7, second), busy(mode),
		}
		i := 0
		allocs := testing.AllocsPerRun(1000, func() {
			c := &calls[i%len(calls)]
			i++
			now = now.Add(3 * ms)
			if tokenbucket.Decide(current, value, 0, now, c, &p) != nil {
				panic("overflow")
			}
			switch p.Action {
			case tokenbucket.Store:
				value, current = p.Apply(value, nil), p.Mode
			case tokenbucket.Delete:
				current = tokenbucket.None
			}
		})
		require.Zero(t, allocs, mode.String())
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, mode := range allModes {
		b.Run(mode.String(), func(b *testing.B) {
			c := busy(mode)
			var p tokenbucket.Plan
			value, current, now := make([]byte, 0, 32), tokenbucket.None, epoch
			b.ReportAllocs()
			for b.Loop() {
				now += 1e7 / 2 * 3 / 2
				if tokenbucket.Decide(current, value, 0, now, &c, &p) != nil {
					b.Fatal("overflow")
				}
				if p.Action == tokenbucket.Store {
					value, current = p.Apply(value, nil), p.Mode
				}
			}
		})
	}
}
