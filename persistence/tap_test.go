package persistence_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/persistence"
)

// tape is a tap that keeps all its bytes.
type tape struct {
	mu     sync.Mutex // guards what follows
	bytes  []byte
	pieces int
	gaps   int
	end    uint64 // of the last write, 0 while more pieces of it follow
	base   uint64 // the position of bytes
}

// Wrote implements persistence.Tap.
func (p *tape) Wrote(piece []byte, end uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes = append(p.bytes, piece...)
	p.pieces++
	p.end = end
	if end != 0 && p.base == 0 {
		p.base = end - uint64(len(p.bytes))
	}
	if end != 0 && end != p.base+uint64(len(p.bytes)) {
		panic("a position is not that of its bytes")
	}
}

// Gap implements persistence.Tap.
func (p *tape) Gap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gaps++
	p.bytes, p.base, p.end = nil, 0, 0
}

// frames returns the frames of b, which has whole frames only.
func frames(t testing.TB, b []byte) (all []persistence.Frame) {
	for len(b) > 0 {
		f, n, err := persistence.NextFrame(b)
		require.NoError(t, err)
		require.Positive(t, n, "a frame is not whole")
		all, b = append(all, f), b[n:]
	}
	return all
}

// stateAfter returns the state after the effects in frames.
func stateAfter(t *testing.T, s *stage, all []persistence.Frame) string {
	ks := keyspace.New(keyspace.Options{Clock: s.clock, Shards: 4, Databases: 3})
	defer ks.Close()
	for _, f := range all {
		if f.Type == persistence.FrameEffects {
			apply(t, ks, f.Body)
		}
	}
	return stateOf(ks)
}

// behindHeaders returns the bytes of the increments after their headers.
func behindHeaders(fsys *faultfs.FS, names ...string) (all []byte) {
	for _, n := range names {
		all = append(all, fsys.Content(n)[persistence.HeaderSize:]...)
	}
	return all
}

// newest returns the name of the last of up to ten increments.
func newest(fsys *faultfs.FS) (name string) {
	for _, n := range fsys.Names() {
		if strings.HasSuffix(n, ".log") {
			name = max(name, n)
		}
	}
	return name
}

// TestTapGetsTheBytesOfTheFiles compares the bytes of tap and files, for records of all types, long
// values, and records that are written while the log continues in another file.
func TestTapGetsTheBytesOfTheFiles(t *testing.T) {
	fsys := faultfs.New()
	s := mustOpen(t, fsys, persistence.SyncEverySecond)
	var got tape
	require.EqualValues(t, 1, s.log.SetTap(&got))
	rng := rand.New(rand.NewPCG(3, 3))
	for i := range 60 {
		s.act(rng)
		if i%20 == 0 {
			setValues(s, 'x', 300_000)
		}
		if i%7 == 0 {
			require.NoError(t, s.log.NoteClock())
			s.log.Tick()
		}
	}
	s.handle.Delete(0, []byte("a"))
	fsys.Inject(func(_ int, c faultfs.Call) error {
		if c.Op == "create" && strings.Contains(c.Name, "base") {
			return syscall.ENOSPC
		}
		return nil
	})
	setValues(s, 'y', 300_000)
	_, err := s.dir.Rewrite(s.ks)
	require.ErrorIs(t, err, syscall.ENOSPC, "the log has gone on in another file")
	fsys.Inject(nil)
	for range 10 {
		s.act(rng)
	}
	s.close()
	want := behindHeaders(fsys, "data/incr.1.log", "data/incr.2.log")
	require.True(t, bytes.Equal(want, got.bytes), "%d bytes, not %d", len(got.bytes), len(want))
	require.Equal(t, s.log.Position(), got.end)
	require.Zero(t, got.gaps)
	seen := map[byte]int{}
	all := frames(t, got.bytes)
	for _, f := range all {
		seen[f.Type]++
	}
	require.Len(t, seen, 5)
	require.Equal(t, 2, seen[persistence.FrameEnd])
	require.Equal(t, s.state(), stateAfter(t, s, all))
}

// TestTapMayBeSetWhileOthersWrite: the tap gets the bytes of the file from the position at which it
// was set to the position at which it was removed.
func TestTapMayBeSetWhileOthersWrite(t *testing.T) {
	fsys := faultfs.New()
	s := mustOpen(t, fsys, persistence.SyncNo)
	const writers, records, taps = 8, 400, 40
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for n := range records {
				pos := s.log.Append(fmt.Appendf(nil, "writer %d, record %d", i, n), nil, begin)
				if n%3 == 0 {
					ring := make(bell, 1)
					for s.log.Await(pos, ring) == persistence.Pending {
						<-ring
					}
				}
			}
		})
	}
	var tapes [taps]tape
	var from [taps + 1]uint64
	for i := range tapes {
		from[i] = s.log.SetTap(&tapes[i])
		for range 20 {
			runtime.Gosched()
		}
		if i == taps-2 {
			all.Wait()
		}
	}
	require.NoError(t, s.log.NoteClock())
	from[taps] = s.log.SetTap(nil)
	require.NoError(t, s.log.NoteClock())
	file := fsys.Content("data/incr.1.log")[persistence.HeaderSize-1:] // the file begins at position 1
	for i := range tapes {
		want := file[from[i]:from[i+1]]
		require.True(t, bytes.Equal(want, tapes[i].bytes), "tap %d: %d bytes, not %d", i, len(tapes[i].bytes), len(want))
		frames(t, tapes[i].bytes)
		if len(want) > 0 {
			require.Equal(t, from[i], tapes[i].base)
			require.Equal(t, from[i+1], tapes[i].end)
		}
	}
	require.Greater(t, len(file), int(from[taps]), "what follows goes to no tap")
	s.close()
}

// TestTapIsToldOfAGap fails each call of a run in turn. Whatever was dropped, after its last gap
// the tap gets the bytes of the increment in which the log continues.
func TestTapIsToldOfAGap(t *testing.T) {
	failed := 0
	for n := 1; ; n++ {
		fsys := faultfs.New()
		s := mustOpen(t, fsys, persistence.SyncAlways)
		var got tape
		s.log.SetTap(&got)
		rng := rand.New(rand.NewPCG(5, 5))
		hit := false
		fsys.Inject(func(i int, _ faultfs.Call) error {
			if i == n {
				hit = true
				return syscall.EIO
			}
			return nil
		})
		for range 4 {
			s.act(rng)
			_ = s.log.Sync() // the outcome is checked below
		}
		if !s.log.Refuses() {
			setValues(s, 'a', 200_000)
		}
		_, _ = s.dir.Rewrite(s.ks) // likewise
		s.log.Tick()
		fsys.Inject(nil)
		if !hit {
			require.Zero(t, got.gaps)
			require.GreaterOrEqual(t, failed, 5)
			s.close()
			return
		}
		refused := s.log.Refuses()
		for s.log.Refuses() {
			_, err := s.dir.Rewrite(s.ks)
			require.NoError(t, err)
		}
		if refused {
			failed++
			require.Positive(t, got.gaps, "call %d", n)
			require.Equal(t, s.log.Position(), got.end, "call %d: where it goes on is known before anything comes", n)
		}
		require.NoError(t, s.handle.Put(0, []byte("last"), 1, []byte("v"), begin.Add(1<<40)))
		s.close()
		written := behindHeaders(fsys, newest(fsys))
		require.True(t, bytes.HasSuffix(written, got.bytes) || bytes.HasSuffix(got.bytes, written), "call %d", n)
		require.Contains(t, string(got.bytes), "last", "call %d", n)
	}
}

// TestNoteClockAppendsTheTimeBehindRecords: the last frames have the time at which they were
// appended, and the watermark, which is the same time when no batch runs.
func TestNoteClockAppendsTheTimeBehindRecords(t *testing.T) {
	s := mustOpen(t, faultfs.New(), persistence.SyncNo)
	var got tape
	s.log.SetTap(&got)
	for range 3 {
		s.clock.Advance(1e8)
		pos := s.log.Append([]byte("record"), nil, s.clock.Now())
		require.NoError(t, s.log.NoteClock())
		require.Greater(t, s.log.Written(), pos)
		all := frames(t, got.bytes)
		last, mark := all[len(all)-2], all[len(all)-1]
		require.Equal(t, persistence.FrameClock, last.Type)
		c, err := persistence.ParseClock(last.Body)
		require.NoError(t, err)
		require.Equal(t, s.clock.Now(), c.Derived)
		require.Equal(t, persistence.FrameWatermark, mark.Type)
		at, err := persistence.ParseWatermark(mark.Body)
		require.NoError(t, err)
		require.Equal(t, s.clock.Now(), at)
		require.Equal(t, "record", string(all[len(all)-3].Body))
	}
	require.Less(t, s.log.Synced(), s.log.Written())
	require.NoError(t, s.log.Sync())
	require.Equal(t, s.log.Written(), s.log.Synced())
	s.log.SetPolicy(persistence.SyncEverySecond)
	s.log.Tick() // writes the durable-offset record that is due
	s.log.Tick() // makes it durable
	s.fs.Inject(nil)
	require.NoError(t, s.log.NoteClock())
	s.log.Tick()
	for _, c := range s.fs.Calls() {
		require.Equal(t, "write", c.Op, "the time alone is no reason for an fsync")
	}
	s.log.Append([]byte("record"), nil, s.clock.Now())
	s.log.Tick()
	require.Positive(t, s.log.Synced())
	require.Equal(t, s.log.Stats().Size, int64(len(s.fs.Content("data/incr.1.log"))))
	synced := 0
	for _, c := range s.fs.Calls() {
		if c.Op == "sync" {
			synced++
		}
	}
	require.Equal(t, 1, synced)
	s.close()
	require.Error(t, s.log.NoteClock())
}
