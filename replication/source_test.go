package replication_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/replication"
	"github.com/cellserver/cellserver/replication/protocol"
)

// TestPartialSync checks which replicas get a partial resynchronization. The numbers are those of
// PSYNC: the number of the first byte that the replica lacks, counted from 1.
func TestPartialSync(t *testing.T) {
	for _, c := range []struct {
		name    string
		id      string
		offset  int64
		partial bool
	}{
		// The history id1 went from 1,000 to 1,500, where the node was promoted. It continued as
		// id2 to 101,500. The backlog begins between 1,500-16,384 and 1,500.
		{"nothing known", "?", -1, false},
		{"nothing known, but an offset", "?", 101_501, false},
		{"the present end", id2, 101_501, true},
		{"one before", id2, 101_500, true},
		{"beyond the end", id2, 101_502, false},
		{"far beyond the end", id2, 1<<63 - 1, false},
		{"the promotion", id2, 1_501, true},
		{"the first byte in the backlog", id2, 1_001, true},
		{"the byte before it", id2, 1_000, false},
		{"the first byte", id2, 1, false},
		{"no byte", id2, 0, false},
		{"a negative byte", id2, -5, false},
		{"everything of the earlier history", id1, 1_501, true},
		{"more than the earlier history had", id1, 1_502, false},
		{"some of the earlier history", id1, 1_200, true},
		{"what the backlog has not of it", id1, 1_000, false},
		{"another history", id3, 1_501, false},
		{"no history", "", 1_501, false},
	} {
		s, _ := begun(t, &settings{200_000, time.Hour, time.Hour})
		s.Begin(replication.History{ID: id1, Offset2: -1}, 1_000)
		s.Retain(true)
		s.Write(frameOf(2, make([]byte, 491)...))
		s.Promote(id2)
		require.Equal(t, replication.History{ID: id2, ID2: id1, Offset2: 1_501}, s.History())
		s.Write(frameOf(2, make([]byte, 99_991)...))
		require.EqualValues(t, 101_500, s.Offset())

		call := call(1, &conn{})
		call.ReplID, call.Offset = c.id, c.offset
		reply, pump := s.PSync(call)
		require.NotNil(t, pump, c.name)
		if c.partial {
			require.Equal(t, "+CONTINUE "+id2+" cell1\r\n", string(reply), c.name)
			f := &follower{at: uint64(c.offset - 1)}
			wire := drain(t, pump)
			for len(wire) > 0 {
				chunk, n, err := replication.NextChunk(wire)
				require.NoError(t, err)
				require.Equal(t, f.at, chunk.Offset)
				f.at, wire = f.at+uint64(len(chunk.Payload)), wire[n:]
			}
			require.EqualValues(t, 101_500, f.at)
			require.Equal(t, protocol.Counts{SyncPartialOK: 1, BytesOut: s.Counts().BytesOut}, s.Counts())
			continue
		}
		require.Equal(t, "+FULLRESYNC "+id2+" 101500 cell1\r\n", string(reply), c.name)
		want := protocol.Counts{SyncFull: 1}
		if c.id != "?" {
			want.SyncPartialErr = 1
		}
		require.Equal(t, want, s.Counts(), c.name)
	}
}

// TestPartialSyncLeftTheBacklog: a replica that lacks more than the backlog has gets a full
// resynchronization.
func TestPartialSyncLeftTheBacklog(t *testing.T) {
	s, _ := begun(t, &settings{replication.LeastBacklog, time.Hour, time.Hour})
	s.Retain(true)
	for range 100 {
		s.Write(frameOf(2, make([]byte, 991)...))
	}
	_, first, length := s.BacklogState()
	require.EqualValues(t, 100_000, first+length)
	require.GreaterOrEqual(t, length, uint64(replication.LeastBacklog))
	for client, offset := range []uint64{first, first + 1} {
		c := call(int64(client), &conn{})
		c.ReplID, c.Offset = id1, int64(offset)
		reply, _ := s.PSync(c)
		require.Equal(t, offset == first+1, strings.HasPrefix(string(reply), "+CONTINUE"))
	}
}

// TestFullSyncBeginsWithAFrame: a full resynchronization begins at a frame, wherever the stream
// is cut.
func TestFullSyncBeginsWithAFrame(t *testing.T) {
	var stream []byte
	begins := map[int]bool{}
	for i := range 30 {
		begins[len(stream)] = true
		stream = append(stream, frameOf(2, make([]byte, i*i)...)...)
	}
	s, _ := begun(t, defaults())
	s.Retain(true)
	begin := 0
	for i := range len(stream) + 1 {
		if begins[i] || i == len(stream) {
			begin = i
		}
		reply, pump := s.PSync(call(int64(i), &conn{}))
		require.Equal(t, fmt.Sprintf("+FULLRESYNC %s %d cell1\r\n", id1, begin), string(reply))
		pump.Closed()
		if i < len(stream) {
			s.Write(stream[i : i+1])
		}
	}
}

// TestFullSyncDuringALongFrame: while a frame is being written whose beginning the backlog does
// not have, a replica is refused and has to retry.
func TestFullSyncDuringALongFrame(t *testing.T) {
	s, clock := begun(t, &settings{replication.LeastBacklog, time.Second, time.Hour})
	long := frameOf(2, make([]byte, 200_000)...)
	refused := func(client int64) {
		t.Helper()
		reply, pump := s.PSync(call(client, &conn{}))
		require.Nil(t, pump)
		require.True(t, strings.HasPrefix(string(reply), "-NOMASTERLINK ") && strings.HasSuffix(string(reply), "\r\n"), "%q", reply)
	}
	s.Write(long[:1])
	refused(1) // there was no backlog when the frame began
	s.Write(long[1:])
	reply, pump := s.PSync(call(2, &conn{}))
	require.Equal(t, fmt.Sprintf("+FULLRESYNC %s %d cell1\r\n", id1, len(long)), string(reply))
	pump.Closed()
	s.Write(long[:100_000])
	refused(3) // without a replica the backlog did not grow
	s.Write(long[100_000:])
	_, pump = s.PSync(call(4, &conn{}))
	require.NotNil(t, pump)
	pump.Closed()
	clock.Advance(10 * time.Second)
}

// TestBacklogLifetime: the backlog is made for the first replica. It is freed when there was no
// replica for repl-backlog-ttl, unless it is retained.
func TestBacklogLifetime(t *testing.T) {
	set := &settings{1 << 20, 5 * time.Second, time.Hour}
	s, clock := begun(t, set)
	active := func() bool {
		active, _, _ := s.BacklogState()
		return active
	}
	s.Write(frameOf(2))
	require.False(t, active())
	require.Zero(t, clock.Timers())

	_, pump := s.PSync(call(1, &conn{}))
	require.True(t, active())
	clock.Advance(time.Minute)
	require.True(t, active())
	pump.Closed()
	clock.Advance(4 * time.Second)
	require.True(t, active())
	clock.Advance(2 * time.Second)
	require.False(t, active())
	require.Zero(t, clock.Timers())

	s.Retain(true)
	clock.Advance(time.Minute)
	require.True(t, active())
	s.Retain(false)
	clock.Advance(6 * time.Second)
	require.False(t, active())

	set.ttl = 0
	_, pump = s.PSync(call(2, &conn{}))
	pump.Closed()
	clock.Advance(time.Hour)
	require.True(t, active())
}

// TestBacklogSizeChanges: repl-backlog-size may change while there are replicas.
func TestBacklogSizeChanges(t *testing.T) {
	set := &settings{1 << 20, time.Hour, time.Hour}
	s, clock := begun(t, set)
	_, pump := s.PSync(call(1, &conn{}))
	drain(t, pump)
	for range 2_000 {
		s.Write(frameOf(2, make([]byte, 991)...))
	}
	_, _, length := s.BacklogState()
	require.GreaterOrEqual(t, length, uint64(1<<20))
	set.backlog = 100_000
	clock.Advance(time.Second)
	_, _, length = s.BacklogState()
	require.GreaterOrEqual(t, length, uint64(100_000))
	require.Less(t, length, uint64(100_000+2*replication.LeastBacklog))
}

// TestLongRecordsOvertakeNobody: a record that is longer than the backlog does not overtake a
// replica. The backlog grows for it, and shrinks once the replica has read it.
func TestLongRecordsOvertakeNobody(t *testing.T) {
	set := &settings{100_000, time.Hour, time.Hour}
	s, clock := begun(t, set)
	c := &conn{}
	_, pump := s.PSync(call(1, c))
	drain(t, pump)
	length := func() uint64 {
		_, _, length := s.BacklogState()
		return length
	}
	at := uint64(0)
	read := func() {
		t.Helper()
		wire := drain(t, pump)
		for len(wire) > 0 {
			chunk, n, err := replication.NextChunk(wire)
			require.NoError(t, err)
			require.Equal(t, at, chunk.Offset)
			at, wire = at+uint64(len(chunk.Payload)), wire[n:]
		}
		require.Equal(t, s.Offset(), at)
	}
	long := frameOf(2, pattern(0, 1_000_000)...)
	for i := range 5 {
		if i%2 == 0 {
			s.Write(long)
		} else {
			for _, piece := range [][]byte{long[:5], long[5:9], long[9:500_000], long[500_000:]} {
				s.Write(piece)
			}
		}
		clock.Advance(time.Second)
		require.GreaterOrEqual(t, length(), uint64(len(long)))
		s.Write(frameOf(2, make([]byte, 80_000)...)) // it falls behind by another backlog
		read()
		require.Zero(t, c.aborts.Load())
	}
	require.Equal(t, protocol.Counts{SyncFull: 1, BytesOut: s.Counts().BytesOut}, s.Counts())

	// It has read half. The backlog keeps what it lacks, and the configured size.
	s.Write(long)
	for sent := 0; sent < 500_000; {
		b, _, err := fill(t, pump, 20_000)
		require.NoError(t, err)
		sent += len(b)
	}
	clock.Advance(time.Second)
	require.InDelta(t, 600_000, float64(length()), 40_000)
	require.Zero(t, c.aborts.Load())
	clock.Advance(time.Second)
	require.Zero(t, c.aborts.Load())
	drain(t, pump)
	clock.Advance(time.Second)
	require.Less(t, length(), uint64(100_000+2*replication.LeastBacklog))

	// A replica that reads nothing is overtaken by later writes, as usual.
	for range 3 {
		s.Write(long)
	}
	clock.Advance(time.Second)
	require.EqualValues(t, 1, c.aborts.Load())
	clock.Advance(time.Second)
	require.Less(t, length(), uint64(100_000+2*replication.LeastBacklog))

	// Without a replica the backlog does not grow.
	s.Write(long)
	require.Less(t, length(), uint64(100_000+2*replication.LeastBacklog))
}

// TestReplicasAreDropped: connections of replicas are closed by everything that makes their state
// obsolete.
func TestReplicasAreDropped(t *testing.T) {
	for name, drop := range map[string]func(s *replication.Source){
		"begin":   func(s *replication.Source) { s.Begin(replication.History{ID: id2, Offset2: -1}, 5) },
		"promote": func(s *replication.Source) { s.Promote(id2) },
		"drop":    func(s *replication.Source) { s.DropReplicas(errors.New("why")) },
		"close":   func(s *replication.Source) { s.Close() },
	} {
		s, clock := begun(t, defaults())
		c := &conn{}
		_, pump := s.PSync(call(1, c))
		s.Write(frameOf(2))
		drop(s)
		require.EqualValues(t, 1, c.aborts.Load(), name)
		b, more, err := fill(t, pump, 1000)
		require.Error(t, err, name)
		require.False(t, more)
		require.Empty(t, b)
		require.Empty(t, s.Replicas())
		require.Zero(t, s.Acked(0))
		pump.Closed()
		s.Close()
		require.Zero(t, clock.Timers(), name)
		reply, pump := s.PSync(call(2, c))
		require.Nil(t, pump)
		require.True(t, strings.HasPrefix(string(reply), "-NOMASTERLINK"))
	}
}

// TestSecondSyncOfAConnection: a connection is at most one replica.
func TestSecondSyncOfAConnection(t *testing.T) {
	s, _ := begun(t, defaults())
	_, pump := s.PSync(call(1, &conn{}))
	reply, second := s.PSync(call(1, &conn{}))
	require.Nil(t, second)
	require.True(t, strings.HasPrefix(string(reply), "-ERR "))
	pump.Closed()
	_, pump = s.PSync(call(1, &conn{}))
	require.NotNil(t, pump)
}

// TestSourceTellsThatTheBacklogWasFreed: Freed is called without locks.
func TestSourceTellsThatTheBacklogWasFreed(t *testing.T) {
	_, clock := begun(t, defaults())
	o := options(clock, &settings{1 << 20, time.Second, time.Hour})
	o.Keyspace = newPrimary(t, 1, defaults()).ks
	var s *replication.Source
	freed := 0
	o.Freed = func() { freed++; s.Begin(replication.History{ID: id2, Offset2: -1}, 0) }
	s = replication.NewSource(o)
	defer s.Close()
	s.Begin(replication.History{ID: id1, Offset2: -1}, 0)
	_, pump := s.PSync(call(1, &conn{}))
	drain(t, pump)
	pump.Closed()
	clock.Advance(3 * time.Second)
	require.Equal(t, 1, freed)
}

// TestFullSyncBeginsWithAFrameHoweverItIsCut: a full resynchronization begins at the last frame
// that is not complete, however the stream is cut into pieces. A frame with an invalid length
// counts as one without a body.
func TestFullSyncBeginsWithAFrameHoweverItIsCut(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	s, _ := begun(t, defaults())
	s.Retain(true)
	var stream []byte
	begins := map[int]bool{0: true}
	for range 1000 {
		frame := frameOf(2, make([]byte, rng.IntN(40))...)
		if rng.IntN(10) == 0 {
			frame = make([]byte, 8)
		}
		stream = append(stream, frame...)
		begins[len(stream)] = true
	}
	whole, at := 0, 0
	for client := int64(1); at < len(stream); client++ {
		from := at
		at = min(len(stream), from+rng.IntN(60))
		s.Write(stream[from:at])
		for i := from; i <= at; i++ {
			if begins[i] {
				whole = i
			}
		}
		reply, pump := s.PSync(call(client, &conn{}))
		require.Equal(t, fmt.Sprintf("+FULLRESYNC %s %d cell1\r\n", id1, whole), string(reply))
		pump.Closed()
	}
}

// TestSourceWarnsOfAnotherTzdata: a replica with another release is told to the log.
func TestSourceWarnsOfAnotherTzdata(t *testing.T) {
	_, clock := begun(t, defaults())
	var log bytes.Buffer
	o := options(clock, defaults())
	o.Keyspace, o.Log = newPrimary(t, 1, defaults()).ks, slog.New(slog.NewTextHandler(&log, nil))
	s := replication.NewSource(o)
	defer s.Close()
	s.Begin(replication.History{ID: id1, Offset2: -1}, 0)
	for i, release := range []string{"", calendar.Release(), "2019c"} {
		require.NotContains(t, log.String(), "tzdata", i)
		c := call(int64(i), &conn{})
		c.Tzdata = release
		reply, pump := s.PSync(c)
		require.NotNil(t, pump)
		require.Equal(t, release != "", strings.HasSuffix(string(reply), " tzdata:"+calendar.Release()+" cell1\r\n"))
	}
	require.Contains(t, log.String(), "another release of tzdata")
	require.Contains(t, log.String(), "replica=2019c")
}
