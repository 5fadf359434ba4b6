package persistence_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/asks"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/persistence"
)

// closed returns the disk of a server with a base and a log that was stopped, and its states since
// the base.
func closed(t testing.TB) (*faultfs.FS, []string, *clocktest.Clock) {
	fsys := faultfs.New()
	s := mustOpen(t, fsys, persistence.SyncEverySecond)
	rng := rand.New(rand.NewPCG(11, 11))
	for range 60 {
		s.act(rng)
	}
	_, err := s.dir.Rewrite(s.ks)
	require.NoError(t, err)
	states := []string{s.state()}
	for range 60 {
		s.act(rng)
		states = append(states, s.state())
	}
	s.close()
	return fsys, states, s.clock
}

func with(fsys *faultfs.FS, name string, content []byte) *faultfs.FS {
	broken := fsys.Kill()
	broken.SetContent(name, content)
	return broken
}

// A single flipped bit is noticed wherever it is. A log that was closed loses nothing: at most its
// end record is damaged, which has no state.
func TestNoFlippedBitLoadsWrongState(t *testing.T) {
	effort.Alone(t)
	t.Parallel()
	fsys, states, clock := closed(t)
	want := withoutExpired(states[len(states)-1], clock.Now())
	refused, loaded := 0, 0
	for _, name := range fsys.Names() {
		content := fsys.Content(name)
		for bit := range 8 * len(content) {
			flipped := bytes.Clone(content)
			flipped[bit/8] ^= 1 << (bit % 8)
			s, err := open(t, with(fsys, name, flipped), clock, persistence.SyncNo)
			if err != nil {
				refused++
				continue
			}
			require.Equal(t, want, s.state(), "%s, bit %d", name, bit)
			loaded++
			s.ks.Close()
		}
	}
	require.Greater(t, refused+loaded, 1000)
	t.Logf("%d flips: %d refused, %d right, 0 silently wrong", refused+loaded, refused, loaded)
}

// logFile returns the largest increment.
func logFile(fsys *faultfs.FS) string {
	best := ""
	for _, n := range fsys.Names() {
		if strings.HasSuffix(n, ".log") && len(fsys.Content(n)) > len(fsys.Content(best)) {
			best = n
		}
	}
	return best
}

// A length in the middle that was increased is refused, with file name, offset and record number.
func TestGrownLengthIsRefusedByName(t *testing.T) {
	fsys, _, clock := closed(t)
	name := logFile(fsys)
	content := fsys.Content(name)
	offset := persistence.HeaderSize
	for range 4 {
		offset += 8 + int(binary.LittleEndian.Uint32(content[offset:]))
	}
	binary.LittleEndian.PutUint32(content[offset:], 99999999)
	_, err := open(t, with(fsys, name, content), clock, persistence.SyncNo)
	require.ErrorContains(t, err, fmt.Sprintf("%s: offset %d, record 5: ", name, offset))
	require.ErrorContains(t, err, "check-aof")
}

// A log that is cut anywhere yields an exact prefix of the actions, even with zeros behind the cut
// and with a missing sector in the unsynced part.
func TestALogCutAnywhereIsAPrefix(t *testing.T) {
	effort.Alone(t)
	t.Parallel()
	fsys := faultfs.New()
	s := mustOpen(t, fsys, persistence.SyncNo)
	states, ends := []string{s.state()}, []int{persistence.HeaderSize}
	rng := rand.New(rand.NewPCG(5, 5))
	name := logFile(fsys)
	for len(states) <= 1000 {
		key := fmt.Appendf(nil, "key:%d", rng.IntN(20))
		require.NoError(t, s.handle.Put(0, key, entry.String, fmt.Appendf(nil, "%d", len(states)), entry.NoExpiry))
		require.Equal(t, persistence.Kept, s.settled())
		states, ends = append(states, s.state()), append(ends, len(fsys.Content(name)))
	}
	content := fsys.Content(name)
	step := 17
	if effort.Long() {
		step = 1
	}
	for cut := persistence.HeaderSize; cut <= len(content); cut += step {
		last := 0
		for last+1 < len(ends) && ends[last+1] <= cut {
			last++
		}
		tail := []byte(nil)
		if cut%3 == 0 {
			tail = make([]byte, 1+cut%4096)
		}
		got, dir := looked(t, with(fsys, name, append(bytes.Clone(content[:cut]), tail...)), s.clock)
		require.Equal(t, states[last], got, "cut at %d", cut)
		if cut != ends[last] || len(tail) > 0 {
			require.NotNil(t, dir.Torn())
			require.Positive(t, dir.Torn().Dropped)
			require.Equal(t, int64(ends[last]), dir.Torn().Offset)
		}
	}
	for at := persistence.HeaderSize; at < len(content); at += 512 {
		holed := bytes.Clone(content)
		clear(holed[at:min(at+512, len(holed))])
		got, err := open(t, with(fsys.Kill(), name, holed), s.clock, persistence.SyncNo)
		require.NoError(t, err)
		require.Contains(t, states, got.state())
	}
}

// looked loads a directory and changes nothing.
func looked(t *testing.T, fsys *faultfs.FS, clock *clocktest.Clock) (string, *persistence.Dir) {
	dir, err := persistence.Open(options(fsys, clock))
	require.NoError(t, err)
	ks := keyspace.New(keyspace.Options{Clock: clock, Shards: 1, Databases: 1})
	defer ks.Close()
	require.NoError(t, dir.Load(ks, &persistence.Progress{}))
	return stateOf(ks), dir
}

// A damaged sector before a durable offset is not a torn end.
func TestDamageBeforeADurableOffsetIsRefused(t *testing.T) {
	fsys, _, clock := closed(t)
	name := logFile(fsys)
	content := fsys.Content(name)
	clear(content[512:1024])
	_, err := open(t, with(fsys, name, content), clock, persistence.SyncNo)
	require.ErrorContains(t, err, "was durable")
}

// TestFlippedBitInWhatWasAcknowledgedIsRefused: under SyncAlways, after a crash of the process,
// wherever the bit is. After the acknowledged effects comes the durable-offset record of the last
// fsync, which may be cut off.
func TestFlippedBitInWhatWasAcknowledgedIsRefused(t *testing.T) {
	fsys := faultfs.New()
	s := mustOpen(t, fsys, persistence.SyncAlways)
	for i := range 50 {
		require.NoError(t, s.handle.Put(0, fmt.Append(nil, "key:", i), entry.String, []byte("v"), entry.NoExpiry))
		require.NoError(t, s.log.Sync())
		require.Equal(t, persistence.Kept, s.settled())
	}
	killed, want, name := fsys.Kill(), s.state(), logFile(fsys)
	s.close()
	content := killed.Content(name)
	last, records := persistence.HeaderSize, 0
	for at := last; at < len(content); records++ {
		last, at = at, at+8+int(binary.LittleEndian.Uint32(content[at:]))
	}
	require.GreaterOrEqual(t, records, 100)
	for at := persistence.HeaderSize; at < len(content); at++ {
		flipped := bytes.Clone(content)
		flipped[at] ^= 1 << (at % 8)
		again, err := open(t, with(killed, name, flipped), s.clock, persistence.SyncNo)
		if at < last {
			require.ErrorContains(t, err, "was durable", "offset %d of %d", at, last)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, again.state())
		again.ks.Close()
	}
}

func TestAnUnknownVersionIsRefusedByName(t *testing.T) {
	fsys, _, clock := closed(t)
	for _, name := range fsys.Names() {
		if !strings.HasSuffix(name, ".log") && !strings.HasSuffix(name, ".snap") {
			continue
		}
		content := fsys.Content(name)
		content[8] = 7
		_, err := open(t, with(fsys, name, content), clock, persistence.SyncNo)
		require.ErrorContains(t, err, name+": format version 7 is unknown")
	}
}

// check-aof agrees with the server about which logs are intact, and after --fix a server starts
// with a prefix.
func TestCheckAndFix(t *testing.T) {
	fsys, states, clock := closed(t)
	var out bytes.Buffer
	require.NoError(t, persistence.Check(fsys, "data", false, &out))
	require.Contains(t, out.String(), "the log is whole")
	name := logFile(fsys)
	content := fsys.Content(name)
	content[len(content)/2] ^= 1
	broken := with(fsys, name, content)
	require.ErrorIs(t, persistence.Check(broken, "data", false, &out), persistence.ErrDamaged)
	_, err := open(t, broken.Kill(), clock, persistence.SyncNo)
	require.Error(t, err)
	require.NoError(t, persistence.Check(broken, "data", true, &out))
	require.NoError(t, persistence.Check(broken, "data", false, &out))
	s, err := open(t, broken, clock, persistence.SyncNo)
	require.NoError(t, err)
	require.Contains(t, alive(states, clock), s.state())
}

func TestDump(t *testing.T) {
	fsys := faultfs.New()
	s := mustOpen(t, fsys, persistence.SyncNo)
	require.NoError(t, s.handle.Put(1, []byte("in base"), entry.String, []byte("one"), entry.NoExpiry))
	_, err := s.dir.Rewrite(s.ks)
	require.NoError(t, err)
	_, err = asks.Throttle(s.handle, 0, []byte{0xff}, &s.quota, 1)
	require.NoError(t, err)
	s.handle.Delete(1, []byte("in base"))
	s.handle.Flush(2)
	s.close()
	var out bytes.Buffer
	require.NoError(t, persistence.Dump(fsys, "data", &out))
	want := strings.Split(`{"file":"base.3.snap","op":"put","db":1,"key":"in base","kind":1,"type":"string","encoding":"embstr","value":"one"}
{"file":"incr.2.log","op":"put","db":0,"key_base64":"/w==","kind":2,"type":"string","encoding":"embstr","expiry_ns":1700000006000000000}
{"file":"incr.2.log","op":"delete","db":1,"key":"in base"}
{"file":"incr.2.log","op":"flush","db":2}
`, "\n")
	require.Equal(t, want, strings.Split(out.String(), "\n"))
}

// busySource makes changes at every pause of a snapshot.
type busySource struct {
	*keyspace.Keyspace
	act func()
}

// Snapshot implements persistence.Source.
func (b busySource) Snapshot(add func(db int, key []byte, e entry.Entry), pause func() error) error {
	return b.Keyspace.Snapshot(add, func() error {
		b.act()
		return pause()
	})
}

// Damage to the effects that were appended while a base was written is recognized as such, however
// soon the process dies: if the log were cut there, it would end before the base.
func TestDamageOfTheNewLogLoadsAKnownStateOrIsRefused(t *testing.T) {
	fsys := faultfs.New()
	s := mustOpen(t, fsys, persistence.SyncEverySecond)
	rng := rand.New(rand.NewPCG(2, 8))
	for range 60 {
		s.act(rng)
	}
	_, err := s.dir.Rewrite(busySource{s.ks, func() { s.act(rng) }})
	require.NoError(t, err)
	states := []string{withoutExpired(s.state(), s.clock.Now())}
	dead := fsys.Kill()
	name := logFile(dead)
	content := dead.Content(name)
	require.Greater(t, len(content), 200)
	refused := 0
	for at := range content {
		flipped := bytes.Clone(content)
		flipped[at] ^= 4
		again, err := open(t, with(dead, name, flipped), s.clock, persistence.SyncNo)
		if err != nil {
			refused++
			continue
		}
		require.Contains(t, states, again.state(), "byte %d of %d", at, len(content))
		again.ks.Close()
	}
	require.Positive(t, refused)
}
