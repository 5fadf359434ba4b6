package replication_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/replication"
)

// FuzzFollow makes a replica read any bytes from a primary. If the first byte is even, the rest
// follows the answer to PSYNC. Otherwise the rest is cut into chunks with valid headers, so that
// the fuzzer reaches the contents of chunks: each has a type, a length below 256 and the payload.
// The replica must not panic or hang. A promotion must then make it a primary with a complete
// state.
func FuzzFollow(f *testing.F) {
	good := &speech{t: f, offset: begin}
	good.time().block("k").whole(1, 1).tail(frameOf(128)...)
	f.Add(append([]byte{0}, good.out...))
	f.Add(append([]byte{0}, (&speech{t: f, offset: begin}).whole(0, 0).time().out...))
	chunks := func(pairs ...any) []byte {
		out := []byte{1}
		for i := 0; i < len(pairs); i += 2 {
			payload := pairs[i+1].([]byte)
			out = append(append(out, byte(pairs[i].(int)), byte(len(payload))), payload...)
		}
		return out
	}
	end := make([]byte, 16)
	end[0], end[8] = 1, 1
	f.Add(chunks(2, blockOf(f, "k", "l"), 1, clockFrame(1e18), 3, end))
	f.Add(chunks(1, frameOf(1, 0, 1, 2), 1, frameOf(2)))
	f.Add(chunks(4, []byte{}, 1, []byte{9, 0, 0, 0}, 1, []byte{0, 0, 0, 0, 1}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 || len(data) > 1<<16 {
			return
		}
		out := data[1:]
		if data[0]%2 == 1 {
			s := &speech{t: t, offset: begin}
			for rest := out; len(rest) >= 2; {
				kind, n := replication.ChunkType(rest[0]), min(int(rest[1]), len(rest)-2)
				if payload := rest[2 : 2+n]; kind == replication.ChunkAlive {
					s.alive()
				} else {
					s.add(kind, payload)
				}
				rest = rest[2+n:]
			}
			out = s.out
		}
		bubble.Test(t, func(t *testing.T) {
			w := newWeb(t)
			b := w.start("b:2", 0)
			require.True(t, b.client().put("own", "x"))
			w.says("evil:1", "+FULLRESYNC "+someID+" 1000 cell1\r\n", out)
			b.node.ReplicaOf("evil", "1")
			eventually(t, "the end", func() bool { return b.info()["cell_repl_error"] != "" })
			require.Equal(t, b.node.IsWhole(), !b.host.loading.Load())
			b.node.Promote(nil)
			b.awaitPrimary()
			require.True(t, b.node.IsWhole())
			require.False(t, b.host.loading.Load())
			require.True(t, b.client().put("new", "x"))
		})
	})
}
