package yield_test

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/yield"
)

// TestProcessorLetsOthersRun: with one processor, another goroutine that is ready runs while the
// work continues.
func TestProcessorLetsOthersRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var ran atomic.Bool
	go ran.Store(true)
	for range 1000 {
		if yield.Processor(); ran.Load() {
			return
		}
	}
	require.Fail(t, "it did not run")
}

func BenchmarkProcessor(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		yield.Processor()
	}
}
