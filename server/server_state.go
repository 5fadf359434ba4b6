package server

import (
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/cluster"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/session"
	"github.com/cellserver/cellserver/transport"
)

// Version is this server's own version. Clients are told commands.RedisVersion.
const Version = "0.1.0"

// Server is one cellserver in this process.
type Server struct {
	config *Config
	logging
	pidFile     string // what New has written, "" for none
	manager     serviceManager
	terminal    io.Writer // a person, or nil
	clock       clock.Clock
	keyspace    *keyspace.Keyspace
	store       RemoteStore // nil without the option store
	engine      *session.Engine
	transport   transport.Transport
	kind        transport.Kind
	listeners   []net.Listener
	port        atomic.Int64
	began       time.Time
	persistence *persistenceManager
	heap
	stopping
}

// RemoteStore is what decides where there is the option store: a [cluster.Store], or a
// double of a test.
type RemoteStore interface {
	command.Remote
	Info() cluster.Info
	// Close answers what is under way, and ends all that the store has started.
	Close()
}

// logging is the log of a server.
type logging struct {
	log     *slog.Logger
	bounds  *logBounds
	logFile *os.File
	level   slog.LevelVar
	exposed bool // whether logExposure has warned
}

// heap is how a server bounds Go's heap, and when it gives memory back.
type heap struct {
	limitHeap func(int64) int64
	freeHeap  func()
	freed     freedHeap
	quiet     quietHeap
	maxMemory atomic.Int64
	heapMu    sync.Mutex
	heapBound int64 // what limitHeap was told last; guarded by heapMu
}

// freedHeap follows what keys take of Go's heap: large collections and long values. The
// runtime collects when something is allocated, and what answers commands allocates
// nothing: without a nudge the memory of a deleted collection would stay for minutes.
type freedHeap struct {
	mu   sync.Mutex
	peak int64 // guarded by mu
}

// quietHeap follows what lies idle in Go's heap while nothing is collected.
type quietHeap struct {
	mu     sync.Mutex
	cycles uint64 // guarded by mu, as are the others
	held   int64  // the most that keys and clients held since before the last cycle
	last   int64  // what they held at the last look
	quiet  int
}

// stopping is how a server is told to end.
type stopping struct {
	stopOnce sync.Once
	stopMode atomic.Uint32 // a command.StopMode
	stop     chan struct{}
}

// serviceManager is the address of the service manager's socket, "" if none listens.
type serviceManager string

// persistenceManager runs persistence: it loads, journals, saves when it is time, and
// recovers the log after a fault. It implements command.Persistence and, around the log,
// keyspace.Journal. Without appendonly it only counts changes and saves.
type persistenceManager struct {
	s  *Server
	fs persistence.FS
	// start is the instant that the clock goes on from; 0 where nothing was loaded.
	start limit.Instant
	log   atomic.Pointer[persistence.Log] // nil without appendonly, and while loading

	mu  sync.Mutex
	dir *persistence.Dir // guarded by mu; nil until something is kept

	changes   atomic.Int64 // records of effects since the start
	writing   sync.Mutex   // held by whoever writes a snapshot
	saving    atomic.Bool  // whether somebody does
	heal      chan struct{}
	work      sync.WaitGroup
	closeOnce sync.Once

	lastSave   atomic.Int64 // civil Unix seconds
	savedAt    atomic.Int64 // stopwatch reading
	savedTo    atomic.Int64 // changes that the last snapshot has
	saveFailed atomic.Bool
	failures   atomic.Int64 // automatic rewrites that failed in a row
	retryAt    atomic.Int64 // stopwatch reading before which none is tried

	progress persistence.Progress
	began    atomic.Int64           // stopwatch reading at which loading began
	loaded   atomic.Pointer[loaded] // nil until it is done
	left     atomic.Bool            // the server stops before it is done
}

// loaded is what loading found, for INFO.
type loaded struct {
	keys, records, torn int64
	took                time.Duration
}

// stopwatch is the time since New.
func (s *Server) stopwatch() time.Duration { return time.Since(s.began) }
