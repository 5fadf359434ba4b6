package transactions_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
)

// TestTransactionsAllocateNothing: a transaction makes no allocation from input bytes to output
// bytes.
func TestTransactionsAllocateNothing(t *testing.T) {
	if effort.RaceDetector {
		t.Skip("the race detector has pools lose some of what they are given")
	}
	b := inproc.OpenTimed(t)
	calls := bytes.Join([][]byte{inproc.Encode(nil, "MULTI"), inproc.Encode(nil, "CL.THROTTLE", "cell", "15", "30", "60", "1"), inproc.Encode(nil, "EXEC")}, nil)
	require.NotContains(t, string(b.Packet(calls)), "ERR")
	require.Zero(t, testing.AllocsPerRun(1000, func() { b.Packet(calls) }))
}

// BenchmarkTransaction measures ten CL.THROTTLE in one packet, with and without MULTI and EXEC.
// One operation is the packet.
func BenchmarkTransaction(b *testing.B) {
	for _, kind := range []string{"MultiOfTen", "TenPlain"} {
		b.Run(kind, func(b *testing.B) {
			s := inproc.OpenTimed(b)
			packets := make([][]byte, 1000)
			for i := range packets {
				var p []byte
				for j := range 10 {
					p = append(p, inproc.Encode(nil, "CL.THROTTLE", fmt.Sprintf("user:%06d", i*10+j), "15", "30", "60")...)
				}
				if kind == "MultiOfTen" {
					p = append(append(inproc.Encode(nil, "MULTI"), p...), inproc.Encode(nil, "EXEC")...)
				}
				require.Equal(b, 0, bytes.Count(s.Packet(p), []byte("-ERR")))
				packets[i] = p
			}
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				s.Packet(packets[n%len(packets)])
			}
		})
	}
}
