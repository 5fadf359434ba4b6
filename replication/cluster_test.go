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

// soon is the timeout of tests that wait for something.
const soon = time.Minute

// hurry is the factor by which the timers of nodes run faster in tests. So a node whose link was
// cut has little to catch up with.
const hurry = 50

// after is time.After, but hurry times faster for durations up to a second. Longer ones are
// timeouts of peers that are stuck.
func after(d time.Duration) <-chan time.Time {
	if d <= time.Second {
		d /= hurry
	}
	return time.After(d)
}

// web is a network of nodes. Its methods may be called from any goroutine.
type web struct {
	t testing.TB

	mu    sync.Mutex // guards the fields below
	nodes map[string]*member
	conns map[net.Conn][2]string // both ends of each connection, and the addresses that dialed
	down  map[string]bool        // addresses that cannot be reached, and cannot reach others
	deaf  map[string]bool        // addresses that cannot be reached
	held  map[string]*gate
	plays map[string]func(conn net.Conn) // servers at addresses without a node
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

// member is a node and everything that belongs to it.
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
	old     bool // acts as an older version without data sets towards its replicas
}

// host is a server that only records which commands it refuses.
type host struct {
	readOnly, masterDown, noReplicas, loading, paused atomic.Bool
	loosened                                          atomic.Bool // no longer refuses changes
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

// keeper has a log without files, and counts calls.
type keeper struct {
	p                    *member
	log                  *persistence.Log
	suspended, rewritten atomic.Int64
	rewriteErr           atomic.Pointer[error]
	origin               *persistence.Origin // recorded in its files at the start, or nil
	noted                noted
	dataSet              atomic.Pointer[string]
	restored             atomic.Bool
}

// noted is a log that keeps the origin that a node records when it stops.
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

// stopwatch returns the time of the synctest bubble.
func stopwatch() time.Duration { return time.Duration(now()) }

func now() int64 { return time.Now().UnixNano() }

// newClock returns the clock of a node. It is ahead of the time of the bubble.
func newClock(ahead time.Duration) *clock.System {
	o := clock.Options{}.WithSources(now, now, now)
	o.Start = limit.Instant(now()).Add(ahead)
	return clock.NewSystem(o)
}

// start starts a node at address "host:port". ahead is how far its clock is ahead of the others.
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

// errRefused is the error of connecting to an address where nothing listens.
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

// slowed is a connection that receives nothing while its gate is held.
type slowed struct {
	net.Conn
	gate *gate
}

func (c *slowed) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.gate.pass()
	return n, err
}

// gate can be held. A goroutine waits for it on a channel, so that the time of the bubble passes.
type gate struct {
	mu   sync.Mutex
	open chan struct{} // guarded by mu; nil while the gate is not held
}

func (g *gate) pass() {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	if open != nil {
		<-open
	}
}

// hold holds the gate until release is called.
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

// gate returns the gate that keeps a node from receiving. The caller holds mu.
func (w *web) gate(address string) *gate {
	if w.held[address] == nil {
		w.held[address] = &gate{}
	}
	return w.held[address]
}

// hold keeps a node from receiving what its primary sends, until release or the end of the test.
func (w *web) hold(address string) (release func()) {
	w.mu.Lock()
	gate := w.gate(address)
	w.mu.Unlock()
	release = gate.hold()
	w.t.Cleanup(release) // a failing test would never end otherwise
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

// isolate disconnects a node from all others, or undoes that.
func (w *web) isolate(address string, on bool) {
	w.mu.Lock()
	w.down[address] = on
	w.mu.Unlock()
	if on {
		w.cut(address)
	}
}

// client changes the keys of a node, as commands do.
type client struct {
	p *member
	v *keyspace.Handle
}

func (m *member) client() *client {
	c := &client{m, m.ks.NewHandle()}
	m.web.t.Cleanup(c.v.Close)
	return c
}

// do runs a command that writes. It returns false if the command is refused, and waits while
// commands are postponed.
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

// change applies other settings.
func (m *member) change(f func(s *replication.Settings)) {
	s := *m.set.Load()
	f(&s)
	m.set.Store(&s)
	m.node.PutInForce()
}

// lacksReplicas reports whether changes are refused because there are too few replicas.
func (m *member) lacksReplicas() bool { return m.host.noReplicas.Load() && !m.node.EnoughReplicas() }

func (m *member) info() map[string]string {
	all := map[string]string{}
	for _, f := range m.node.Info() {
		all[f.Name] = f.Value
	}
	return all
}

// follow makes the node a replica of another.
func (m *member) follow(to *member) {
	host, port, _ := net.SplitHostPort(to.address)
	m.node.ReplicaOf(host, port)
}

// step is how often eventually polls. It has no divisor in common with the periods of nodes, so
// that it does not see them at the same point each time.
const step = 1_700_003 * time.Nanosecond

// eventually lets time pass until f returns true.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(soon); !f(); time.Sleep(step) {
		require.True(t, time.Now().Before(end), what)
	}
}

func (m *member) awaitField(name, value string) {
	m.web.t.Helper()
	eventually(m.web.t, name+" becomes "+value, func() bool { return m.info()[name] == value })
}

func (m *member) awaitUp() {
	m.web.t.Helper()
	eventually(m.web.t, m.address+" is up", func() bool { return m.info()["master_link_status"] == "up" })
}

func (m *member) awaitPrimary() {
	m.web.t.Helper()
	eventually(m.web.t, m.address+" leads", func() bool { return !m.node.Role().Replica && !m.host.readOnly.Load() })
}

// awaitEqual waits until the replicas have all that the primary has, and compares their keys.
func awaitEqual(t *testing.T, primary *member, replicas ...*member) {
	t.Helper()
	for _, r := range replicas {
		r.awaitUp()
		eventually(t, "equal offsets", func() bool {
			return r.info()["master_link_status"] == "up" &&
				r.source.Offset() == primary.source.Offset() && r.source.History().ID == primary.source.History().ID
		})
		// Keys that may expire during the comparison are left out.
		then := max(primary.clock.Now(), r.clock.Now()).Add(soon)
		require.Equal(t, primary.stateAt(then), r.stateAt(then))
	}
}
