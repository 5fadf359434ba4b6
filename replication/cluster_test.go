package replication_test

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/replication"
)

// soon bounds the waiting for something that happens.
const soon = time.Minute

// hurry is how many times faster the timers of nodes run in tests, so that nodes whose link was cut
// have little to catch up with.
const hurry = 50

// after is time.After in a hurry, but for the timeouts of peers that are stuck.
func after(d time.Duration) <-chan time.Time {
	if d <= time.Second {
		d /= hurry
	}
	return time.After(d)
}

// web is some nodes that reach each other. Its methods may be called from any goroutine.
type web struct {
	t testing.TB

	mu    sync.Mutex // guards what follows
	nodes map[string]*member
	conns map[net.Conn][2]string // both ends of each connection, by who dialled whom
	down  map[string]bool        // addresses that cannot be reached, and that reach no other
	deaf  map[string]bool        // addresses that cannot be reached
	held  map[string]*gate
	plays map[string]func(conn net.Conn) // what answers at addresses without a node
	ids   atomic.Int64
	wg    sync.WaitGroup
}

func newWeb(t testing.TB) *web {
	w := &web{
		t: t, nodes: map[string]*member{}, conns: map[net.Conn][2]string{}, down: map[string]bool{},
		deaf: map[string]bool{}, held: map[string]*gate{}, plays: map[string]func(net.Conn){},
	}
	t.Cleanup(w.wg.Wait)
	return w
}

// member is a node with all that belongs to it.
type member struct {
	web     *web
	address string
	port    int
	ks      *keyspace.Keyspace
	clock   *clock.System
	source  *replication.Source
	node    *replication.Node
	host    *host
	keeper  *keeper
	set     atomic.Pointer[replication.Settings]
	stop    func()
	old     bool // of a version without data sets, towards its replicas
}

// host is a server of which nothing is there but what refuses commands.
type host struct {
	readOnly, masterDown, noReplicas, loading, paused atomic.Bool
	loosened                                          atomic.Bool // nothing has refused changes
	unblocked                                         atomic.Int64
	primary                                           atomic.Pointer[string]
}

func (h *host) SetReadOnly(on bool) {
	if !on && !h.noReplicas.Load() {
		h.loosened.Store(true)
	}
	h.readOnly.Store(on)
}

func (h *host) SetMasterDown(on bool) { h.masterDown.Store(on) }
func (h *host) SetNoReplicas(on bool) { h.noReplicas.Store(on) }
func (h *host) SetLoading(on bool)    { h.loading.Store(on) }
func (h *host) SetPrimary(ip, port string) {
	primary := ip + " " + port
	h.primary.Store(&primary)
}

func (h *host) PauseWrites() { h.paused.Store(true) }
func (h *host) Resume()      { h.paused.Store(false) }
func (h *host) Unblock()     { h.unblocked.Add(1) }

// keeper has a log without files, and counts.
type keeper struct {
	p                    *member
	log                  *persistence.Log
	suspended, rewritten atomic.Int64
	rewriteErr           atomic.Pointer[error]
	origin               *persistence.Origin // that its files had at the start, or nil
	noted                noted
	dataSet              atomic.Pointer[string]
	restored             atomic.Bool
}

// noted is a log that keeps the origin that a node leaves.
type noted struct {
	*persistence.Log
	origin *persistence.Origin
}

func (l *noted) NoteOrigin(o *persistence.Origin) error {
	l.origin = o
	return l.Log.NoteOrigin(o)
}

func (k *keeper) Origin() *persistence.Origin { return k.origin }

func (k *keeper) Log() (replication.Log, error) {
	k.p.ks.Exclusively(func() {
		if k.log == nil {
			k.log = persistence.NewVolatile(persistence.LogOptions{
				Stopwatch: stopwatch, Clock: k.p.clock.Record, Watermark: k.p.ks.Watermark, Log: slog.New(slog.DiscardHandler),
			})
			k.p.ks.SetJournal(k.log)
			k.noted.Log = k.log
		}
	})
	return &k.noted, nil
}

func (k *keeper) DataSet() string { return *k.dataSet.Load() }

func (k *keeper) Restored() bool { return k.restored.Load() }

func (k *keeper) SetDataSet(id string) {
	k.dataSet.Store(&id)
	k.restored.Store(false)
}

func (k *keeper) Suspend() { k.suspended.Add(1) }

func (k *keeper) Rewrite() (finish func(context.Context) error) {
	return func(context.Context) error {
		k.rewritten.Add(1)
		if err := k.rewriteErr.Load(); err != nil {
			return *err
		}
		return nil
	}
}

// stopwatch reads the time of the bubble.
func stopwatch() time.Duration { return time.Duration(now()) }

func now() int64 { return time.Now().UnixNano() }

// newClock returns the clock of a node that is ahead of the time of the bubble.
func newClock(ahead time.Duration) *clock.System {
	o := clock.Options{}.WithSources(now, now, now)
	o.Start = limit.Instant(now()).Add(ahead)
	return clock.NewSystem(o)
}

// start starts a node that is reached at address "host:port". ahead is how far its clock is
// ahead of others.
func (w *web) start(address string, ahead time.Duration) *member {
	return w.startWith(address, ahead, func(*replication.Options) {})
}

// startWith is start with other options of the node.
func (w *web) startWith(address string, ahead time.Duration, with func(o *replication.Options)) *member {
	_, port, _ := net.SplitHostPort(address)
	p := &member{web: w, address: address, host: &host{}}
	p.port, _ = strconv.Atoi(port)
	p.clock = newClock(ahead)
	p.ks = keyspace.New(keyspace.Options{Clock: p.clock, Shards: 4})
	p.keeper = &keeper{p: p}
	p.keeper.SetDataSet(persistence.NewID())
	p.set.Store(&replication.Settings{
		Port: p.port, Listens: []int{p.port}, AnnounceIP: strings.Split(address, ":")[0], Announced: true, Priority: 100,
		Timeout: soon, ServeStale: true, RefuseOther: true, BacklogSize: 1 << 20,
	})
	p.source = replication.NewSource(replication.SourceOptions{
		Keyspace: p.ks, Reached: func() uint64 { return p.node.Reached() },
		DataSet:     func(claimed string) string { return p.node.DataSet(claimed) },
		BacklogSize: func() int64 { return p.set.Load().BacklogSize },
		BacklogTTL:  func() time.Duration { return 0 },
		PingPeriod:  func() time.Duration { return time.Second },
		Stopwatch:   stopwatch,
		After: func(d time.Duration, f func()) clock.Timer {
			return time.AfterFunc(d/hurry, f)
		},
		Freed: func() { p.node.Freed() },
		Log:   slog.New(slog.DiscardHandler),
	})
	o := replication.Options{
		Keyspace: p.ks, Clock: p.clock, Files: p.keeper, Host: p.host, Source: p.source,
		Dial:      func(_ context.Context, _, to string) (net.Conn, error) { return w.dial(address, to) },
		Settings:  func() replication.Settings { return *p.set.Load() },
		Stopwatch: stopwatch,
		After:     after,
		Log:       slog.New(slog.DiscardHandler),
	}
	with(&o)
	p.node = replication.New(o)
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { _ = p.node.Run(ctx) })
	p.stop = func() {
		cancel()
		w.cut(address)
		run.Wait()
		p.source.Close()
	}
	w.t.Cleanup(p.stop)
	w.mu.Lock()
	w.nodes[address] = p
	w.mu.Unlock()
	return p
}

// errRefused is what a node says of an address where nothing listens.
var errRefused = syscall.ECONNREFUSED

func (w *web) dial(from, to string) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, answer := w.nodes[to], w.plays[to]
	if p != nil {
		answer = p.serve
	}
	if answer == nil || w.down[to] || w.down[from] || w.deaf[to] {
		return nil, errRefused
	}
	near, far := net.Pipe()
	w.conns[near], w.conns[far] = [2]string{from, to}, [2]string{from, to}
	w.wg.Go(func() {
		answer(far)
		w.mu.Lock()
		delete(w.conns, far)
		delete(w.conns, near)
		w.mu.Unlock()
	})
	return &slowed{near, w.gate(from)}, nil
}

// slowed is a connection over which nothing comes while its gate is held.
type slowed struct {
	net.Conn
	gate *gate
}

func (c *slowed) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.gate.pass()
	return n, err
}

// gate can be held. A goroutine waits for it at a channel, so that time passes meanwhile.
type gate struct {
	mu   sync.Mutex
	open chan struct{} // guarded by mu: nil while the gate is not held
}

func (g *gate) pass() {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	if open != nil {
		<-open
	}
}

// hold holds the gate, until release.
func (g *gate) hold() (release func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	open := make(chan struct{})
	g.open = open
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.open = nil
		close(open)
	})
}

// gate is held while nothing comes to a node. The caller holds mu.
func (w *web) gate(address string) *gate {
	if w.held[address] == nil {
		w.held[address] = &gate{}
	}
	return w.held[address]
}

// hold keeps from a node what its primary sends, until release or the end of the test.
func (w *web) hold(address string) (release func()) {
	w.mu.Lock()
	gate := w.gate(address)
	w.mu.Unlock()
	release = gate.hold()
	w.t.Cleanup(release) // or a test that fails meanwhile would never end
	return release
}

// refuse keeps others from connecting to a node, or undoes that.
func (w *web) refuse(address string, on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deaf[address] = on
}

// cut closes the connections of a node.
func (w *web) cut(address string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for conn, ends := range w.conns {
		if ends[0] == address || ends[1] == address {
			_ = conn.Close()
		}
	}
}

// isolate keeps a node from being reached, or undoes that.
func (w *web) isolate(address string, on bool) {
	w.mu.Lock()
	w.down[address] = on
	w.mu.Unlock()
	if on {
		w.cut(address)
	}
}

// client is one that changes the keys of nodes, as commands do.
type client struct {
	p *member
	v *keyspace.Handle
}

func (p *member) client() *client {
	c := &client{p, p.ks.NewHandle()}
	p.web.t.Cleanup(c.v.Close)
	return c
}

// do runs a command that changes something, unless that is refused or postponed.
func (c *client) do(f func(v *keyspace.Handle)) bool {
	for !c.v.Enter() {
		started := make(chan struct{})
		c.p.ks.World().NotifyStart(func() { close(started) })
		<-started
	}
	if h := c.p.host; h.readOnly.Load() || h.loading.Load() || h.paused.Load() {
		c.v.Leave()
		return false
	}
	c.v.Refresh()
	f(c.v)
	position, log := c.v.TakePosition(), c.p.keeper.log
	c.v.Leave()
	if log != nil && position != 0 {
		log.Await(position, nil)
	}
	return true
}

func (c *client) put(key, value string) bool {
	return c.do(func(v *keyspace.Handle) {
		_, err := v.SetString(0, []byte(key), []byte(value), keyspace.SetOptions{Expiry: entry.NoExpiry})
		require.NoError(c.p.web.t, err)
	})
}

// change has other settings in force.
func (p *member) change(f func(s *replication.Settings)) {
	s := *p.set.Load()
	f(&s)
	p.set.Store(&s)
	p.node.PutInForce()
}

// lacksReplicas reports whether changes are refused for want of replicas.
func (p *member) lacksReplicas() bool { return p.host.noReplicas.Load() && !p.node.EnoughReplicas() }

func (p *member) info() map[string]string {
	all := map[string]string{}
	for _, f := range p.node.Info() {
		all[f.Name] = f.Value
	}
	return all
}

// follow makes p a replica of another.
func (p *member) follow(to *member) {
	host, port, _ := net.SplitHostPort(to.address)
	p.node.ReplicaOf(host, port)
}

// step is how often eventually looks. It has no divisor in common with the periods of nodes, which
// would be seen at the same point of theirs each time.
const step = 1_700_003 * time.Nanosecond

// eventually lets time pass until f reports that something is so.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(soon); !f(); time.Sleep(step) {
		require.True(t, time.Now().Before(end), what)
	}
}

func (p *member) awaitField(name, value string) {
	p.web.t.Helper()
	eventually(p.web.t, name+" becomes "+value, func() bool { return p.info()[name] == value })
}

func (p *member) awaitUp() {
	p.web.t.Helper()
	eventually(p.web.t, p.address+" is up", func() bool { return p.info()["master_link_status"] == "up" })
}

func (p *member) awaitPrimary() {
	p.web.t.Helper()
	eventually(p.web.t, p.address+" leads", func() bool { return !p.node.Role().Replica && !p.host.readOnly.Load() })
}

// awaitEqual waits until replicas have all that the primary has, and compares.
func awaitEqual(t *testing.T, primary *member, replicas ...*member) {
	t.Helper()
	for _, r := range replicas {
		r.awaitUp()
		eventually(t, "equal offsets", func() bool {
			return r.info()["master_link_status"] == "up" &&
				r.source.Offset() == primary.source.Offset() && r.source.History().ID == primary.source.History().ID
		})
		// What expires while this compares is left out.
		then := max(primary.clock.Now(), r.clock.Now()).Add(soon)
		require.Equal(t, primary.stateAt(then), r.stateAt(then))
	}
}
