package records

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy/registry"
	"github.com/cellserver/cellserver/remote/engine"
)

// Engine runs scripts on the server that has the records.
type Engine interface {
	// Eval runs the script with keys of one slot, and waits for the reply: a string, an int64, nil or
	// a []any of them. keys are without the prefix of the engine. An err for which a
	// [*engine.Error] says NotDone means that the script did not run and never will. After any
	// other error it is unknown whether it ran, or will run. Any goroutine may call Eval.
	Eval(ctx context.Context, script string, keys, args []string) (reply any, err error)
	// Confirm runs a script as Eval does, and waits until a replica has its writes, for at most d.
	Confirm(ctx context.Context, script string, keys, args []string, d time.Duration) (engine.Confirmed, error)
	// Listen subscribes to channel, whose name is without the prefix of the engine, until ctx ends. It calls heard
	// with nil when a subscription begins and for each message, and with an error when it ends or
	// cannot begin. heard does not block. Listen blocks.
	Listen(ctx context.Context, channel string, heard func(err error))
}

// Observer gets the records that other servers have changed. The Store calls it while it holds a
// lock, so that its methods must not call the Store.
type Observer interface {
	// ObserveChange applies the keys and values of one change, all at once. An empty value means that the record was
	// deleted. The bytes are valid until the next pair.
	ObserveChange(pairs iter.Seq2[[]byte, []byte])
	// ObserveAll replaces all records by pairs of keys and values, all at once. The bytes are valid
	// until the next pair. Values may be unreadable.
	ObserveAll(pairs iter.Seq2[[]byte, []byte])
}

// Options configures a [Store]. Engine, Observer and Now are required.
type Options struct {
	Engine   Engine
	Observer Observer
	// Now returns the present instant by the clock of the engine, in Unix nanoseconds; 0 before that
	// clock is known.
	Now func() limit.Instant
	// Timeout is the time limit of one request, which is extended for a request with much data. The
	// default is 2 s.
	Timeout time.Duration
	// ID returns the random id of a change. The default is a generator of math/rand.
	ID func() uint64
	// Moved, if not nil, is called after each change of [Store.Version], when the observer has the records of the new
	// version. A change that the server itself makes is not observed. Moved must neither block nor call the Store.
	Moved func()
	// Log gets messages for operators. It gets no keys of clients. The default is no log.
	Log *slog.Logger
}

// bounds are the bounds of a store, which are smaller in tests.
type bounds struct {
	logEntries  int // the number of changes in the log
	logPairs    int // the maximum size of the pairs of a change in the log, in bytes
	changeBytes int // the maximum size of a change, in bytes
	known       int // the number of versions that a server remembers
	stepEntries int // the maximum number of changes that one request reads
	stepBytes   int // the size in bytes after which a request reads no more changes
	scan        int // the approximate number of records that one request reads
}

// defaults are the bounds of a store.
var defaults = bounds{
	logEntries: 10_000, logPairs: 256 << 10, changeBytes: 64 << 20, known: 1024,
	stepEntries: 128, stepBytes: 1 << 20, scan: 1000,
}

// refreshTime is the time limit of Refresh, which may have to read all records.
const refreshTime = time.Minute

// Store is the store of a registry whose records are in the engine. It implements registry.Store.
// Any goroutine may call its methods. Those that ask the engine block, one at a time.
type Store struct {
	o      Options
	bounds bounds

	version    atomic.Pointer[Version]
	followed   atomic.Int64 // the time at which the records were last up to date: see LastFollowed
	lag        atomic.Int64 // what the method Lag returns, in nanoseconds
	lost       atomic.Int64
	loaded     atomic.Bool // whether all records were ever read
	subscribed atomic.Bool // whether the subscription to changes is in force: see Subscribed

	confirms confirms

	mu sync.Mutex
	at Version // the version that the observer has; guarded by mu
	// base is the version at the latest Refresh or change, whose records the registry has taken over.
	// It is guarded by mu.
	base  Version
	known []Version // the latest versions that were observed, the newest last; guarded by mu
}

var _ registry.Store = (*Store)(nil)

// New returns a store without records. [Store.Load] or [Store.Follow] reads them.
func New(o Options) *Store {
	if o.Timeout <= 0 {
		o.Timeout = 2 * time.Second
	}
	if o.ID == nil {
		o.ID = rand.Uint64
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{o: o, bounds: defaults}
	s.version.Store(&Version{})
	s.lag.Store(-1)
	s.confirms.turn = make(chan struct{}, 1)
	return s
}

// Version returns the version that the observer has. It does not wait.
func (s *Store) Version() Version { return *s.version.Load() }

// LastFollowed returns the instant, by the engine's clock, at which the engine has last confirmed
// that it has the same version as this server; 0 before the first time. It does not wait.
func (s *Store) LastFollowed() limit.Instant { return limit.Instant(s.followed.Load()) }

// Age returns the time from LastFollowed to now, at least 0. It is the maximum Duration before the
// records were read. It does not wait.
func (s *Store) Age(now limit.Instant) time.Duration {
	last := s.LastFollowed()
	if last == 0 {
		return math.MaxInt64
	}
	return time.Duration(max(0, now-last))
}

// Unread returns an error, a [decide.Unavailable], as long as no records were read, and then nil. It does not wait.
func (s *Store) Unread() error {
	if !s.loaded.Load() {
		return errUnread
	}
	return nil
}

const errUnread decide.Unavailable = "the policies of the store were not read yet"

// Lost returns the number of changes that this server has observed or made and that the engine has
// lost since, as happens in a failover. It does not wait.
func (s *Store) Lost() int64 { return s.lost.Load() }

// Civil returns the instant: instants of the engine are civil.
func (*Store) Civil(i limit.Instant) limit.Instant { return i }

// FromCivil returns the instant: instants of the engine are civil.
func (*Store) FromCivil(i limit.Instant) limit.Instant { return i }

// Refresh applies the changes of other servers and returns the present instant. It waits for the
// engine. The error is a [decide.Unavailable].
func (s *Store) Refresh() (limit.Instant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), refreshTime)
	defer cancel()
	if err := s.follow(ctx); err != nil {
		return s.o.Now(), unavailable(err)
	}
	s.base = s.at
	return s.o.Now(), nil
}

// move stores that the observer has the version v, after a change or the reading of all records. The
// caller holds mu.
func (s *Store) move(v Version) {
	s.at = v
	s.version.Store(&v)
	if s.o.Moved != nil {
		s.o.Moved()
	}
	if v == (Version{}) {
		return
	}
	if s.known = append(s.known, v); len(s.known) >= 2*s.bounds.known { // append copies the versions only now and then
		s.known = append([]Version(nil), s.known[len(s.known)-s.bounds.known:]...)
	}
}

// sizeOfSecond is the number of bytes of a request that extend its time limit by one second.
const sizeOfSecond = 4 << 20

// eval runs a script, for the time limit of a request at most.
func (s *Store) eval(ctx context.Context, script string, keys []string, args ...string) (any, error) {
	size := 0
	for _, a := range args {
		size += len(a)
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout+time.Duration(size/sizeOfSecond)*time.Second)
	defer cancel()
	return s.o.Engine.Eval(ctx, script, keys, args)
}

// notDone reports whether err, an error of the engine, means that the script did not run and never
// will.
func notDone(err error) bool {
	var e *engine.Error
	return errors.As(err, &e) && e.NotDone
}

// unavailable returns the error for clients whose call needs the engine, which failed with err.
func unavailable(err error) error {
	return decide.Unavailable("the policies of the store are not available: " + err.Error())
}
