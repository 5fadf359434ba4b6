package server

import (
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/admin"
	"github.com/cellserver/cellserver/cluster"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/policy/policyfile"
	"github.com/cellserver/cellserver/policy/registry"
	"github.com/cellserver/cellserver/replication"
	"github.com/cellserver/cellserver/report"
	"github.com/cellserver/cellserver/session"
	"github.com/cellserver/cellserver/stats"
	"github.com/cellserver/cellserver/transport"
)

// Version is this server's own version. Clients are told commands.RedisVersion.
const Version = "0.1.0"

// Server is one cellserver in this process.
type Server struct {
	config *config.Config
	logging
	pidFile     string // what New has written, "" for none
	manager     serviceManager
	given       Options // what the caller replaced
	clock       clock.Clock
	keyspace    *keyspace.Keyspace
	store       RemoteStore // nil without the option store
	engine      *session.Engine
	transport   transport.Transport
	kind        transport.Kind
	listening   listening
	admin       adminPort
	tls         certificates
	port        atomic.Int64
	began       time.Time
	persistence *persistenceManager
	replicator  *replicator // nil where nothing is replicated
	reports     *reporting
	reloading   reloading
	policies    policies
	recent      recent
	lastKeys    lastKeys
	decided     decided
	heap
	stopping
}

// reloading is held while the configuration is read again.
type reloading struct {
	sync.Mutex
	changed []*acl.User // whose clients are to be closed
}

// policies are the limits that live in the server. With the option store there are none.
type policies struct {
	registry *registry.Registry
	file     *policyfile.File // nil without the option policy-file
}

// certificates are the configurations of TLS of new connections, nil where there is none.
type certificates struct {
	clients atomic.Pointer[tls.Config] // of tls-port
	admin   atomic.Pointer[tls.Config] // of admin-port, which asks for no certificate
}

// listening is where the server listens.
type listening struct {
	mu    sync.Mutex        // guards what follows
	open  []*listener       // those of port first, then tls-port, then unixsocket
	serve func(l *listener) // nil before Run
	ended bool
}

// listener is one of them.
type listener struct {
	net.Listener
	option string // that it is opened for
	// late: it was opened while the server ran, which goes on without it.
	late    bool
	retired atomic.Bool
}

// RemoteStore is what decides where there is the option store: a [cluster.Store], or a
// double of a test.
type RemoteStore interface {
	env.Remote
	Info() cluster.Info
	// SetFailPolicies puts the option fail-policy in force, by prefix.
	SetFailPolicies(byPrefix map[string]string)
	// Close answers what is under way, and ends all that the store has started.
	Close()
}

// adminPort is the port for operators; it has no listener without admin-port.
type adminPort struct {
	port      *admin.Server
	listeners []net.Listener
	// certificates returns the configuration of TLS; nil without certificates.
	certificates func() *tls.Config
}

// reporting samples the server once a second and makes reports of that. It implements
// [report.Source].
type reporting struct {
	s        *Server
	recorder *report.Recorder
	reporter *report.Reporter
	id       string
	used     atomic.Int64 // bytes of memory in use, at the last sample
	clients  clientKinds  // of the sampling goroutine
	busy     bool         // of the sampling goroutine: whether warnOfScript has warned
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
	heapSize  func() int64
	freeHeap  func()
	longInput longInput
	freed     freedHeap
	quiet     quietHeap
	maxMemory atomic.Int64
	heapMu    sync.Mutex
	heapBound int64 // what limitHeap was told last; guarded by heapMu
}

// longInput is what is known of clients' long commands.
type longInput struct {
	held int          // looks, one after another, at which it was held; of the janitor
	most atomic.Int64 // bytes of it outside of Go's heap, the most that a look has found in this second
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
	stopMode atomic.Uint32 // an env.StopMode
	stop     chan struct{}
}

// serviceManager is the address of the service manager's socket, "" if none listens.
type serviceManager string

// persistenceManager runs persistence: it loads, journals, saves when it is time, and
// recovers the log after a fault. It implements env.Persistence and, around the log,
// keyspace.Journal. Without appendonly it only counts changes and saves.
type persistenceManager struct {
	s  *Server
	fs persistence.FS
	// start is the instant that the clock goes on from; 0 where nothing was loaded.
	start limit.Instant
	log   atomic.Pointer[persistence.Log] // nil without appendonly, and while loading

	mu  sync.Mutex
	dir *persistence.Dir // guarded by mu; nil until something is kept

	keepsNone
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
	snapshots  snapshots

	progress persistence.Progress
	began    atomic.Int64           // stopwatch reading at which loading began
	loaded   atomic.Pointer[loaded] // nil until it is done
	left     atomic.Bool            // the server stops before it is done

	dataSet dataSet
}

// dataSet is the data set that memory has.
type dataSet struct {
	has     atomic.Pointer[persistence.DataSet] // nil until it is loaded
	changed atomic.Bool                         // the manifest may name another
}

// snapshots is what INFO says of those that the server has written.
type snapshots struct {
	written atomic.Int64
	began   atomic.Int64 // stopwatch reading at which the last one was begun
	took    atomic.Int64 // nanoseconds that the last one took, even if it failed; 0 before the first
}

// loaded is what loading found, for INFO and for the node.
type loaded struct {
	keys, records, torn int64
	took                time.Duration
	// origin is what the files say of the primary that their state came from; nil if there is none.
	origin *persistence.Origin
}

// stopwatch is the time since New.
func (s *Server) stopwatch() time.Duration { return time.Since(s.began) }

// noteEvent keeps an event that took long enough for LATENCY. Any goroutine may call it.
func (s *Server) noteEvent(e stats.Event, took time.Duration) {
	if s.engine != nil && s.engine.Events.Watches(took) {
		s.engine.Events.Note(e, took, s.engine.CivilMillis()/1000)
	}
}

// keepsNone says what the files do not have.
type keepsNone struct {
	volatile  atomic.Bool // there is no file: log only passes on what happens to replicas
	suspended atomic.Bool // a full sync is under way, whose state is not whole
	making    sync.Mutex  // held by whoever makes that log
}

// fileLog returns the log on disk, nil without appendonly.
func (m *persistenceManager) fileLog() *persistence.Log {
	if m.volatile.Load() {
		return nil
	}
	return m.log.Load()
}

// replicator joins a node of package replication with the server: it is the [replication.Host],
// and holds replies back until enough replicas have acknowledged their effects.
type replicator struct {
	s      *Server
	source *replication.Source
	node   *replication.Node

	// replies is repl-ack-replies.
	replies atomic.Int32
	// overdue is the position of the log that was reached repl-ack-timeout ago. Nobody waits
	// longer for replicas to acknowledge what is before it.
	overdue atomic.Uint64
	// forgone is the position of the log at which this server last ceased to be a primary.
	forgone atomic.Uint64
	reached []reachedAt // of the goroutine of watch
}

// reachedAt says when the log had got to a position, by the stopwatch.
type reachedAt struct {
	position uint64
	at       time.Duration
}
