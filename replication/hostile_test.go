package replication_test

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/replication"
)

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }

// tape is a tap that keeps the bytes that it gets.
type tape struct{ b bytes.Buffer }

func (t *tape) Wrote(piece []byte, _ uint64) { t.b.Write(piece) }
func (t *tape) Gap()                         {}

// clockFrame returns a clock frame of a primary.
func clockFrame(at limit.Instant) []byte {
	l := persistence.NewVolatile(persistence.LogOptions{
		Stopwatch: stopwatch, Clock: func() clock.Record { return clock.Record{Derived: at} }, Log: slog.New(slog.DiscardHandler),
	})
	var got tape
	l.SetTap(&got)
	_ = l.NoteClock()
	return got.b.Bytes()
}

// blockOf returns a block with a string under each key.
func blockOf(t testing.TB, keys ...string) []byte {
	b := persistence.NewBlocks()
	for _, key := range keys {
		b.Add(0, []byte(key), entry.Entry{Kind: entry.String, Expiry: entry.NoExpiry, Value: []byte("v")})
	}
	payload, n, ok := b.Take(0)
	require.True(t, ok)
	require.Equal(t, len(keys), n)
	return bytes.Clone(payload)
}

// speech builds what a primary sends after its answer to PSYNC.
type speech struct {
	t      testing.TB
	out    []byte
	offset uint64
}

func (s *speech) add(kind replication.ChunkType, payload []byte) *speech {
	s.out = replication.AppendChunk(s.out, replication.Chunk{Type: kind, Offset: s.offset, Payload: payload})
	if kind == replication.ChunkTail {
		s.offset += uint64(len(payload))
	}
	return s
}

func (s *speech) tail(b ...byte) *speech { return s.add(replication.ChunkTail, b) }
func (s *speech) block(keys ...string) *speech {
	return s.add(replication.ChunkBlock, blockOf(s.t, keys...))
}

func (s *speech) whole(keys, blocks uint64) *speech {
	s.out = replication.AppendWhole(s.out, s.offset, keys, blocks)
	return s
}
func (s *speech) time() *speech { return s.tail(clockFrame(1e18)...) }
func (s *speech) at(offset uint64) *speech {
	s.offset = offset
	return s
}

func (s *speech) alter(at int, with byte) *speech {
	s.out[len(s.out)-1-at] ^= with
	return s
}

// inBlock changes a byte of the last chunk, which is a block, and corrects the checksum.
func (s *speech) inBlock(at int, to byte) *speech {
	c, n, err := replication.NextChunk(s.out)
	require.NoError(s.t, err)
	require.Len(s.t, s.out, n)
	payload := bytes.Clone(c.Payload)
	payload[at], s.out = to, nil
	return s.add(c.Type, payload)
}

const begin = 1000 // the offset at which these primaries begin

// says plays a primary that answers PSYNC with line and then sends the bytes of out. It closes
// the connection when these were read.
func (w *web) says(address, line string, out []byte) {
	w.playOnce(address, func(conn net.Conn, r *bufio.Reader) {
		for {
			words, err := readCommand(r)
			if err != nil {
				return
			}
			if words[0] != "PSYNC" {
				_, _ = io.WriteString(conn, "+OK\r\n")
				continue
			}
			_, _ = io.WriteString(conn, line)
			go func() { _, _ = io.Copy(io.Discard, r) }() // ends with the connection
			_, _ = conn.Write(out)
			return
		}
	})
}

// TestHostilePrimary: whatever invalid data a primary sends, the link ends with a reason. The
// state is the old one, or the node reports that it has no complete state.
func TestHostilePrimary(t *testing.T) {
	unknown := frameOf(5, 1, 2, 3)
	rows := map[string]struct {
		want  string
		whole bool // the old state is still there
		f     func(s *speech)
	}{
		"a checksum":            {"checksum of a chunk is wrong", true, func(s *speech) { s.block("k").alter(0, 1) }},
		"a checksum of a tail":  {"checksum of a chunk is wrong", true, func(s *speech) { s.time().alter(20, 1) }},
		"a type of chunk":       {"type 9", true, func(s *speech) { s.add(9, nil) }},
		"a type of a new kind":  {"type 200", true, func(s *speech) { s.add(200, []byte("x")) }},
		"bytes that are zero":   {"must be zero", true, func(s *speech) { s.block("k"); s.out[1] = 1 }},
		"a long tail":           {"length", true, func(s *speech) { s.add(replication.ChunkTail, make([]byte, 1<<20+1)) }},
		"an empty tail":         {"length", true, func(s *speech) { s.tail() }},
		"a forged length":       {"EOF", true, func(s *speech) { s.block("k"); s.out[7] = 0x3f }},
		"a gap":                 {"offset 1001, at offset 1000", true, func(s *speech) { s.at(begin + 1).time() }},
		"a tail twice":          {"offset 1000, at offset", true, func(s *speech) { s.time().at(begin).time() }},
		"a block elsewhere":     {"offset 7, at offset 1000", true, func(s *speech) { s.at(7).block("k") }},
		"the end elsewhere":     {"offset 7, at offset 1000", false, func(s *speech) { s.block("k").at(7).whole(1, 1) }},
		"keys that are missing": {"1 keys in 1 blocks, and says 2 in 1", false, func(s *speech) { s.block("k").whole(2, 1) }},
		"a block is missing":    {"1 keys in 1 blocks, and says 1 in 2", false, func(s *speech) { s.block("k").whole(1, 2) }},
		"nothing before an end": {"0 keys in 0 blocks, and says 1 in 1", true, func(s *speech) { s.whole(1, 1) }},
		"a block behind it":     {"when there is no full sync", false, func(s *speech) { s.block("k").whole(1, 1).block("l") }},
		"an end behind it":      {"when there is no full sync", false, func(s *speech) { s.block("k").whole(1, 1).whole(1, 1) }},
		"no block":              {"cannot be stored", true, func(s *speech) { s.add(replication.ChunkBlock, []byte("\x01nonsense that is no block")) }},
		"no block behind one":   {"cannot be stored", false, func(s *speech) { s.block("k").add(replication.ChunkBlock, []byte("\x01nonsense that is no block")) }},
		"a database too many":   {"database 200 is beyond", true, func(s *speech) { s.block("k"); s.inBlock(1, 200) }},
		"a kind that is none":   {"cannot be stored", true, func(s *speech) { s.block("k"); s.inBlock(10, 128+60) }},
		"a footer":              {"cannot be stored", true, func(s *speech) { s.add(replication.ChunkBlock, append([]byte{2}, make([]byte, 24)...)) }},
		"an unknown frame":      {"frame of type 5, which this version does not know", true, func(s *speech) { s.tail(unknown...) }},
		"frame of type 0":       {"frame of type 0", true, func(s *speech) { s.tail(frameOf(0)...) }},
		"a frame without bytes": {"a record of 0 bytes", true, func(s *speech) { s.tail(0, 0, 0, 0, 0, 0, 0, 0, 1) }},
		"a frame beyond bounds": {"which cannot be", true, func(s *speech) { s.tail(255, 255, 255, 255, 0, 0, 0, 0, 1) }},
		"effects that are none": {"cannot be applied", true, func(s *speech) { s.tail(frameOf(1, 255, 255, 255)...) }},
		"no effect":             {"cannot be applied", true, func(s *speech) { s.tail(frameOf(1)...) }},
		"a clock that is none":  {"clock record of 3 bytes", true, func(s *speech) { s.tail(frameOf(2, 1, 2, 3)...) }},
		"a clock in the past":   {"what no clock does", true, func(s *speech) { s.tail(clockFrame(-1)...) }},
		"a clock far ahead":     {"what no clock does", true, func(s *speech) { s.tail(clockFrame(limit.MaxInstant)...) }},
		"no watermark":          {"watermark of 3 bytes", true, func(s *speech) { s.tail(frameOf(129, 1, 2, 3)...) }},
		"a watermark too early": {"watermark of the primary is no instant", true, func(s *speech) { s.tail(frameOf(129, 0, 0, 0, 0, 0, 0, 0, 255)...) }},
		"a watermark far ahead": {"watermark of the primary is no instant", true, func(s *speech) { s.tail(frameOf(129, 255, 255, 255, 255, 255, 255, 255, 127)...) }},
		"an end too early":      {"closed the connection", false, func(s *speech) { s.block("k") }},
		"an end in a chunk":     {"EOF", false, func(s *speech) { s.block("k").block("l"); s.out = s.out[:len(s.out)-1] }},
		"no clock":              {"closed the connection", false, func(s *speech) { s.block("k").whole(1, 1) }},
		"a frame cut off":       {"closed the connection", false, func(s *speech) { s.block("k").tail(clockFrame(1e18)[:9]...) }},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				w := newWeb(t)
				b := w.start("b:2", 0)
				require.True(t, b.client().put("own", "x"))
				s := &speech{t: t, offset: begin}
				row.f(s)
				w.says("evil:1", "+FULLRESYNC "+someID+" 1000 cell1\r\n", s.out)
				b.node.ReplicaOf("evil", "1")
				eventually(t, row.want, func() bool { return strings.Contains(b.info()["cell_repl_error"], row.want) })
				require.Equal(t, row.whole, b.node.IsWhole())
				require.Equal(t, !row.whole, b.host.loading.Load())
				require.Equal(t, map[bool]string{true: "100", false: "0"}[row.whole], b.info()["slave_priority"])
				require.Equal(t, "down", b.info()["master_link_status"])

				// The operator may promote the node. Its state is then complete, if possibly
				// empty.
				before := b.clock.Now()
				b.node.Promote(nil)
				b.awaitPrimary()
				require.False(t, b.host.loading.Load())
				require.True(t, b.node.IsWhole())
				require.Equal(t, row.whole, len(b.state()) == 1)
				require.True(t, b.client().put("new", "x"))
				if row.whole {
					require.GreaterOrEqual(t, b.clock.Now(), before)
				}
				require.Less(t, time.Duration(b.clock.Now()-newClock(0).Now()).Abs(), soon, "the clock is its own again")
			})
		})
	}
}

// TestFriendlyPrimary sends streams that are valid although nodes of this version do not send
// them.
func TestFriendlyPrimary(t *testing.T) {
	rows := map[string]func(s *speech){
		"the time first":         func(s *speech) { s.time().block("k").whole(1, 1) },
		"the time last":          func(s *speech) { s.block("k").whole(1, 1).time() },
		"a tail before a block":  func(s *speech) { s.tail(frameOf(3)...).time().block("k").whole(1, 1) },
		"frames of later kinds":  func(s *speech) { s.tail(frameOf(128, 1)...).tail(frameOf(255)...).time().block("k").whole(1, 1) },
		"frames of files":        func(s *speech) { s.tail(frameOf(3, 1)...).tail(frameOf(4)...).time().block("k").whole(1, 1) },
		"chunks without meaning": func(s *speech) { s.alive().time().alive().block("k").alive().whole(1, 1).alive() },
		"frames in pieces": func(s *speech) {
			for _, c := range clockFrame(1e18) {
				s.tail(c)
			}
			s.block("k").whole(1, 1)
		},
		"a block in a frame": func(s *speech) {
			f := clockFrame(1e18)
			s.tail(f[:9]...).block("k").tail(f[9:]...).whole(1, 1)
		},
	}
	for name, f := range rows {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				w := newWeb(t)
				b := w.start("b:2", 0)
				require.True(t, b.client().put("own", "x"))
				s := &speech{t: t, offset: begin}
				f(s)
				w.says("kind:1", "+FULLRESYNC "+someID+" 1000 cell1\r\n", s.out)
				b.node.ReplicaOf("kind", "1")
				eventually(t, "whole", func() bool { return b.info()["master_replid"] == someID && b.node.IsWhole() })
				require.Contains(t, b.stateAt(limit.MinInstant), "0/k")
				require.Len(t, b.stateAt(limit.MinInstant), 1)
				require.Equal(t, s.offset, b.source.Offset())
				eventually(t, "it is served", func() bool { return !b.host.loading.Load() })
				require.Less(t, time.Duration(b.clock.Now()-1e18).Abs(), soon)
			})
		})
	}
}

func (s *speech) alive() *speech {
	s.out = replication.AppendChunk(s.out, replication.Chunk{Type: replication.ChunkAlive})
	return s
}

// TestHostileStream sends invalid data after a partial resynchronization. The state stays
// complete.
func TestHostileStream(t *testing.T) {
	rows := map[string]struct {
		want string
		f    func(s *speech)
	}{
		"a block":          {"when there is no full sync", func(s *speech) { s.block("k") }},
		"an end":           {"when there is no full sync", func(s *speech) { s.whole(0, 0) }},
		"effects":          {"cannot be applied", func(s *speech) { s.tail(frameOf(1, 255, 255, 255)...) }},
		"an unknown frame": {"type 127", func(s *speech) { s.tail(frameOf(127)...) }},
		"a gap":            {"at offset", func(s *speech) { s.at(s.offset + 1).time() }},
		"an overlap":       {"at offset", func(s *speech) { s.at(s.offset - 1).time() }},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				w := newWeb(t)
				a, b := w.start("a:1", 0), w.start("b:2", 0)
				require.True(t, a.client().put("own", "x"))
				b.follow(a)
				awaitEqual(t, a, b)
				w.isolate(a.address, true)
				b.awaitField("master_link_status", "down")
				h := b.source.History()
				s := &speech{t: t, offset: b.source.Offset()}
				row.f(s)
				w.says("evil:1", "+CONTINUE "+h.ID+" cell1\r\n", s.out)
				b.node.ReplicaOf("evil", "1")
				eventually(t, row.want, func() bool { return strings.Contains(b.info()["cell_repl_error"], row.want) })
				require.True(t, b.node.IsWhole())
				require.False(t, b.host.loading.Load())
				require.Len(t, b.state(), 1)
				w.isolate(a.address, false)
				full := b.keeper.suspended.Load()
				b.follow(a)
				awaitEqual(t, a, b)
				require.Equal(t, full, b.keeper.suspended.Load(), "nothing was harmed")
			})
		})
	}
}

// TestForgedLengthTakesNoMemory announces a block of a gigabyte, and a frame of one.
func TestForgedLengthTakesNoMemory(t *testing.T) {
	for name, f := range map[string]func(s *speech){
		"block": func(s *speech) { s.block("k"); s.out[7] = 0x3f },
		"frame": func(s *speech) { s.tail(0, 0, 0, 0x3f, 0, 0, 0, 0, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				w := newWeb(t)
				b := w.start("b:2", 0)
				s := &speech{t: t, offset: begin}
				f(s)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				w.says("evil:1", "+FULLRESYNC "+someID+" 1000 cell1\r\n", s.out)
				b.node.ReplicaOf("evil", "1")
				eventually(t, "the end", func() bool { return b.info()["cell_repl_error"] != "" })
				runtime.ReadMemStats(&after)
				require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
			})
		})
	}
}

// TestSyncThatBreaksIsDoneAgain cuts the first full resynchronization. Until the second has
// ended, the replica serves nothing.
func TestSyncThatBreaksIsDoneAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWeb(t)
		a, b := w.start("a:1", 0), w.start("b:2", 0)
		require.True(t, a.client().put("k", "x"))
		s := (&speech{t: t, offset: begin}).block("half")
		w.says("evil:1", "+FULLRESYNC "+someID+" 1000 cell1\r\n", s.out)
		b.node.ReplicaOf("evil", "1")
		eventually(t, "not whole", func() bool { return !b.node.IsWhole() && b.info()["cell_repl_error"] != "" })
		b.follow(a)
		awaitEqual(t, a, b)
		require.Equal(t, int64(2), b.keeper.suspended.Load())
		require.False(t, b.host.loading.Load())
	})
}
