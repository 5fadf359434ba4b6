package replication_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sort"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/internal/asks"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/replication"
	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/transport"
)

const (
	id1 = "1111111111111111111111111111111111111111"
	id2 = "2222222222222222222222222222222222222222"
	id3 = "3333333333333333333333333333333333333333"
)

// settings are the options of a source that a test may change.
type settings struct {
	backlog   int64
	ttl, ping time.Duration
}

// A server whose clock does not implement Clock has no replication.
var _ replication.Clock = (*clocktest.Clock)(nil)

// options returns the options of a source that uses the clock c.
func options(c *clocktest.Clock, set *settings) replication.SourceOptions {
	start := c.Now()
	return replication.SourceOptions{
		BacklogSize: func() int64 { return set.backlog },
		BacklogTTL:  func() time.Duration { return set.ttl },
		PingPeriod:  func() time.Duration { return set.ping },
		Stopwatch:   func() time.Duration { return c.Now().Sub(start) },
		After:       c.AfterFunc,
		Log:         slog.New(slog.DiscardHandler),
	}
}

func defaults() *settings { return &settings{1 << 20, time.Hour, 10 * time.Second} }

// begun returns a source that has a history at offset 0 and no keys.
func begun(t testing.TB, set *settings) (*replication.Source, *clocktest.Clock) {
	c := clocktest.New(1_700_000_000_000_000_000)
	o := options(c, set)
	o.Keyspace = keyspace.New(keyspace.Options{Clock: c, Shards: 4, Databases: 2})
	s := replication.NewSource(o)
	t.Cleanup(o.Keyspace.Close)
	t.Cleanup(s.Close)
	s.Begin(replication.History{ID: id1, Offset2: -1}, 0)
	return s, c
}

// conn counts the calls for the connection of a client.
type conn struct{ wakes, aborts atomic.Int64 }

func (c *conn) Wake()                       { c.wakes.Add(1) }
func (c *conn) Abort()                      { c.aborts.Add(1) }
func (c *conn) RemoteAddr() net.Addr        { return nil }
func (c *conn) LocalAddr() net.Addr         { return nil }
func (c *conn) Held() (input, output int64) { return 0, 0 }

// call returns a PSYNC of a client that has no state.
func call(client int64, p *conn) protocol.PSync {
	return protocol.PSync{Client: client, Peer: p, ReplID: "?", Offset: -1, Capa: protocol.CapaCell1, IP: "10.0.0.1", Port: int(6000 + client)}
}

// frameOf returns a frame of the given type, without a checksum.
func frameOf(kind byte, body ...byte) []byte {
	n := uint32(len(body) + 1)
	return append([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24), 0, 0, 0, 0, kind}, body...)
}

// primary is a primary without a Node, for tests of replicas.
type primary struct {
	t      testing.TB
	clock  *clocktest.Clock
	ks     *keyspace.Keyspace
	handle *keyspace.Handle
	log    *persistence.Log
	source *replication.Source
	rng    *rand.Rand
}

// newPrimary returns a primary whose log is not stored.
func newPrimary(t testing.TB, seed uint64, set *settings) *primary {
	c := clocktest.New(1_700_000_000_000_000_000)
	p := &primary{t: t, clock: c, rng: rand.New(rand.NewPCG(seed, 2))}
	p.ks = keyspace.New(keyspace.Options{Clock: c, Shards: 4, Databases: 2})
	t.Cleanup(p.ks.Close)
	o := options(c, set)
	p.log = persistence.NewVolatile(persistence.LogOptions{
		Stopwatch: o.Stopwatch, Log: o.Log, Clock: func() clock.Record { return clock.Record{Derived: c.Now()} },
	})
	t.Cleanup(func() { _ = p.log.Close() })
	p.ks.SetJournal(p.log)
	p.handle = p.ks.NewHandle()
	base := p.log.Position()
	o.Keyspace, o.Reached = p.ks, func() uint64 { return p.log.Position() - base }
	p.source = replication.NewSource(o)
	t.Cleanup(p.source.Close)
	p.source.Begin(replication.History{ID: id1, Offset2: -1}, 0)
	require.Equal(t, base, p.log.SetTap(tap{p.source}))
	return p
}

// tap passes a log on to a source.
type tap struct{ s *replication.Source }

func (t tap) Wrote(piece []byte, _ uint64) { t.s.Write(piece) }
func (t tap) Gap()                         {}

// flush makes the log write, and so passes everything on to the source.
func (p *primary) flush() { require.NoError(p.t, p.log.NoteClock()) }

// churn makes a random change to one of some keys, and writes the log from time to time.
func (p *primary) churn() {
	p.clock.Advance(time.Duration(p.rng.IntN(1e7)))
	p.handle.Refresh()
	v, rng := p.handle, p.rng
	key, db, n := fmt.Appendf(nil, "key:%d", rng.IntN(60)), rng.IntN(2), int64(rng.IntN(3))
	quota, _ := gcra.NewQuota(3, 5, 60)
	switch rng.IntN(17) {
	case 0, 1, 2:
		_, _ = asks.Throttle(v, db, key, &quota, n)
	case 3, 4:
		modes := []slidingwindow.Mode{slidingwindow.Counter, slidingwindow.Fixed, slidingwindow.Log, slidingwindow.Buckets}
		_, _ = asks.Allow(v, db, append(key, 'w'), &slidingwindow.Call{Mode: modes[rng.IntN(4)], Limit: 20, Window: time.Minute, Quantity: n - 1, Slots: 6})
	case 5, 6:
		_, _ = asks.Lease(v, db, append(key, 'l'), &concurrency.Call{Op: concurrency.Acquire, Limit: 20, Lease: time.Minute, Member: []byte{byte(rng.IntN(30))}})
	case 7:
		v.Delete(db, key)
	case 8:
		v.Rename(db, key, fmt.Appendf(nil, "key:%d", rng.IntN(60)), false)
	case 9:
		v.Expire(db, key, v.Now().Add(time.Second), 0)
	case 10:
		_ = v.Put(db, key, entry.String, bytes.Repeat([]byte("12345"), 1+rng.IntN(8000)), entry.NoExpiry)
	case 11:
		v.Persist(db, key)
	case 12, 13:
		_ = v.WriteHash(db, append(key, 'h'), func(h *collection.Hash) error {
			for range 1 + rng.IntN(40) {
				_, _ = h.Set(fmt.Appendf(nil, "field:%d", rng.IntN(300)), fmt.Appendf(nil, "%d", rng.Int()))
			}
			return nil
		})
	case 14, 15:
		_ = v.WriteList(db, append(key, 'q'), func(l *collection.List) error {
			_ = l.PushBack(fmt.Appendf(nil, "%d", rng.Int()))
			if rng.IntN(3) == 0 {
				l.PopFront()
			}
			return nil
		})
	case 16:
		if rng.IntN(300) == 0 {
			v.Flush(db)
		}
	}
	if rng.IntN(3) == 0 {
		p.flush()
	}
}

// stateOf returns all keys that have not expired, as text.
func stateOf(ks *keyspace.Keyspace) string {
	var lines []string
	_ = ks.Snapshot(func(db int, key []byte, e entry.Entry) {
		lines = append(lines, fmt.Sprintf("%d %q %d %d %x", db, key, e.Kind, e.Expiry, e.Value))
	}, func() error { return nil })
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// follower applies what a source sends, and checks its order.
type follower struct {
	clock        *clocktest.Clock
	ks           *keyspace.Keyspace
	chunks, tail []byte
	at           uint64 // of the next byte of the stream
	applied      uint64 // everything before it is applied
	keys, blocks uint64
	whole        bool
	alive        int
}

// newFollower returns a follower. It has no state if ks is nil, or else continues with ks at
// offset at.
func newFollower(t testing.TB, c *clocktest.Clock, ks *keyspace.Keyspace, at uint64) *follower {
	f := &follower{clock: c, ks: ks, at: at, applied: at, whole: ks != nil}
	if ks == nil {
		f.ks = keyspace.New(keyspace.Options{Clock: c, Shards: 8, Databases: 2})
		t.Cleanup(f.ks.Close)
	}
	return f
}

// take takes the next bytes.
func (f *follower) take(b []byte) error {
	f.chunks = append(f.chunks, b...)
	for {
		c, n, err := replication.NextChunk(f.chunks)
		if err != nil || n == 0 {
			return err
		}
		if err := f.chunk(c); err != nil {
			return err
		}
		f.chunks = f.chunks[n:]
	}
}

func (f *follower) chunk(c replication.Chunk) error {
	if c.Type != replication.ChunkAlive && c.Offset != f.at {
		return fmt.Errorf("a chunk of type %d at %d, expected at %d", c.Type, c.Offset, f.at)
	}
	switch c.Type {
	case replication.ChunkAlive:
		f.alive++
	case replication.ChunkTail:
		f.at += uint64(len(c.Payload))
		f.tail = append(f.tail, c.Payload...)
		return f.apply()
	case replication.ChunkBlock:
		keys, err := persistence.DecodeBlock(c.Payload, f.ks.Restore)
		f.keys, f.blocks = f.keys+uint64(keys), f.blocks+1
		return err
	case replication.ChunkWhole:
		keys, blocks := c.Whole()
		if keys != f.keys || blocks != f.blocks || f.whole || len(f.tail) > 0 {
			return fmt.Errorf("whole after %d keys of %d, %d bytes of a frame", f.keys, keys, len(f.tail))
		}
		f.whole = true
	}
	return nil
}

// apply applies the complete frames.
func (f *follower) apply() error {
	for {
		r, n, err := persistence.NextFrame(f.tail)
		if err != nil || n == 0 {
			return err
		}
		if r.Type == persistence.FrameEffects {
			if err := f.ks.ApplyRecord(r.Body, f.clock.Now()); err != nil {
				return err
			}
		}
		f.tail, f.applied = f.tail[n:], f.applied+uint64(n)
	}
}

// fill calls pump.Fill once, with room for limit bytes.
func fill(t testing.TB, pump transport.Pump, limit int) (sent []byte, more bool, err error) {
	out, more, err := pump.Fill([]byte("replies"), limit)
	require.True(t, bytes.HasPrefix(out, []byte("replies")))
	require.LessOrEqual(t, len(out), len("replies")+limit)
	return out[len("replies"):], more, err
}

// drain fills until there is nothing more to send.
func drain(t testing.TB, pump transport.Pump) (sent []byte) {
	for more := true; more; {
		var b []byte
		var err error
		b, more, err = fill(t, pump, transport.PumpMost)
		require.NoError(t, err)
		sent = append(sent, b...)
	}
	return sent
}
