package persistence_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/internal/asks"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/slidingwindow"
)

const begin = limit.Instant(1_700_000_000_000_000_000)

// stage is a keyspace with a directory, on a disk whose calls tests can make fail.
type stage struct {
	t      testing.TB
	fs     *faultfs.FS
	clock  *clocktest.Clock
	ks     *keyspace.Keyspace
	dir    *persistence.Dir
	log    *persistence.Log
	handle *keyspace.Handle
	quota  gcra.Quota
}

func options(fsys persistence.FS, source *clocktest.Clock) persistence.Options {
	return persistence.Options{
		FS: fsys, Path: "data",
		Clock:     func() clock.Record { return clock.Record{Derived: source.Now()} },
		Stopwatch: func() time.Duration { return time.Millisecond },
		Log:       slog.New(slog.DiscardHandler),
	}
}

// open loads the files on fsys; it returns the error of any step.
func open(t testing.TB, fsys *faultfs.FS, clock *clocktest.Clock, p persistence.Policy) (*stage, error) {
	s := &stage{t: t, fs: fsys, clock: clock}
	s.ks = keyspace.New(keyspace.Options{Clock: clock, Shards: 4, Databases: 3})
	var err error
	if s.dir, err = persistence.Open(options(fsys, clock)); err != nil {
		return nil, err
	}
	if err = s.dir.Load(s.ks, &persistence.Progress{}); err != nil {
		return nil, err
	}
	if s.log, err = s.dir.Start(persistence.LogOptions{Policy: p, Tick: time.Hour, Watermark: s.ks.Watermark}); err != nil {
		return nil, err
	}
	s.ks.SetJournal(s.log)
	s.handle = s.ks.NewHandle()
	q, err := gcra.NewQuota(5, 10, 60)
	require.NoError(t, err)
	s.quota = q
	return s, nil
}

func mustOpen(t testing.TB, fsys *faultfs.FS, p persistence.Policy) *stage {
	s, err := open(t, fsys, clocktest.New(begin), p)
	require.NoError(t, err)
	return s
}

// state returns all live keys as text.
func (s *stage) state() string { return stateOf(s.ks) }

func stateOf(ks *keyspace.Keyspace) string {
	var lines []string
	_ = ks.Snapshot(func(db int, key []byte, e entry.Entry) {
		lines = append(lines, fmt.Sprintf("%d %q %d %d %x", db, key, e.Kind, e.Expiry, e.Value))
	}, func() error { return nil })
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// act does an operation, usually with an effect, at an instant of its own.
func (s *stage) act(rng *rand.Rand) {
	s.clock.Advance(time.Duration(1 + rng.IntN(1e9)))
	s.handle.Refresh()
	key := fmt.Appendf(nil, "key:%d", rng.IntN(40))
	db := rng.IntN(3)
	var err error
	switch n := rng.IntN(100); {
	case n < 45:
		_, err = asks.Throttle(s.handle, db, key, &s.quota, int64(rng.IntN(3)))
	case n < 60:
		err = s.handle.Put(db, key, entry.String, fmt.Appendf(nil, "%d", rng.Int()), entry.NoExpiry)
	case n < 70:
		s.handle.Delete(db, key)
	case n < 78:
		s.handle.Expire(db, key, s.clock.Now().Add(time.Hour), 0)
	case n < 86:
		s.handle.Rename(db, key, fmt.Appendf(nil, "key:%d", rng.IntN(40)), false)
	case n < 88:
		s.handle.Flush(db)
	case n < 94:
		c := slidingwindow.Call{Mode: slidingwindow.Log, Limit: 9, Window: time.Minute, Quantity: 1}
		_, err = asks.Allow(s.handle, db, fmt.Appendf(nil, "log:%d", rng.IntN(5)), &c)
	default:
		s.handle.Lock([]keyspace.Ref{{DB: db, Key: key}, {DB: db, Key: []byte("other")}})
		_, err = asks.Throttle(s.handle, db, key, &s.quota, 1)
		if err == nil || errors.Is(err, limit.ErrNotInteger) {
			err = s.handle.Put(db, []byte("other"), entry.String, key, entry.NoExpiry)
		}
		s.handle.Unlock()
	}
	for _, expected := range []error{limit.ErrNotInteger, limit.ErrWrongType, limit.ErrNotKept} {
		if errors.Is(err, expected) {
			return
		}
	}
	require.NoError(s.t, err)
}

// noWaker is a waker that does nothing.
type noWaker struct{}

func (noWaker) Wake() {}

// settled reports whether the effects of the handle since the last call are kept.
func (s *stage) settled() persistence.Outcome {
	p := s.handle.TakePosition()
	if p == 0 {
		return persistence.Kept
	}
	return s.log.Await(p, noWaker{})
}

func (s *stage) close() { require.NoError(s.t, s.dir.Close()) }

// withoutExpired returns a state without the lines of expired keys.
func withoutExpired(state string, now limit.Instant) string {
	var kept []string
	for _, line := range strings.Split(state, "\n") {
		var (
			db, kind int
			key      string
			expiry   limit.Instant
		)
		if _, err := fmt.Sscanf(line, "%d %q %d %d", &db, &key, &kind, &expiry); err == nil && expiry > now {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}
