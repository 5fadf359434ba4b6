// Package server assembles the parts of the program: configuration, keyspace, commands and
// transports. Tests run a [Server] within the test process and with a clock of their own. Package
// main only passes arguments and signals to this package.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/acl/userfile"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/local"
	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/persistence/manager"
	"github.com/cellserver/cellserver/process"
	"github.com/cellserver/cellserver/remote"
	"github.com/cellserver/cellserver/session"
	"github.com/cellserver/cellserver/stats"
	"github.com/cellserver/cellserver/transport"
	"github.com/cellserver/cellserver/transport/direct"
	"github.com/cellserver/cellserver/transport/epoll"
	"github.com/cellserver/cellserver/transport/goroutine"
)

// Options has the parts of a server that a caller, such as a test, may replace. With the zero value
// the server is as its configuration describes it.
type Options struct {
	// Groups returns the groups of commands that the server has; nil uses [commands.Groups].
	Groups func() []command.Group
	// IdleVariables are the environment variables of envoyproxy/ratelimit that were given and have no
	// effect here. A line of the log names them.
	IdleVariables []string
	// Clock is the clock by which the server decides; nil uses the one that the option clock names.
	Clock clock.Clock
	// Time has the sources of time for the [clock.System]. The zero value uses the machine's
	// clocks.
	Time clock.Options
	// Log receives messages for operators; nil creates a log from the configuration.
	Log *slog.Logger
	// Terminal is the terminal for the text at the start; nil if there is none.
	Terminal io.Writer
	// Listen opens the TCP ports of the configuration, without TLS; nil uses package net. The
	// server adds TLS to the listeners that need it.
	Listen func(network, address string) (net.Listener, error)
	// Listeners has the listeners for clients, in place of the listeners of the configuration and
	// of Inherited; nil replaces nothing.
	Listeners []net.Listener
	// Inherited has listening sockets by the option whose listeners they replace: port, tls-port,
	// unixsocket, admin-port, http-port or rls-port. See [Inherited].
	Inherited map[string][]net.Listener
	// AdminListeners has the listeners of the admin port, in place of the listeners of the
	// configuration and of Inherited; nil replaces nothing.
	AdminListeners []net.Listener
	// FS is the file system for persistence; nil uses the file system of the operating system.
	FS persistence.FS
	// Env modifies the options of the engine before the engine is created; nil modifies nothing.
	Env func(*env.Options)
	// OpenStore opens the store that the option store names; nil uses [remote.Open].
	OpenStore func(remote.Options) (RemoteStore, error)
	// Dial opens TCP connections to a primary, without TLS; nil uses [net.Dialer.DialContext]. The
	// server adds TLS if tls-replication is yes.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Node is the replication node that commands use; nil stands for the server's own node. The
	// metrics always show the server's own node.
	Node env.Node
	// WrapStore wraps the store of each worker; nil wraps nothing. It has no effect with the option
	// store.
	WrapStore func(env.Local) env.Local
	// LimitHeap sets the memory limit of Go's runtime. In a process that has only this server, it
	// is [debug.SetMemoryLimit]. The server calls it with the bound that follows from maxmemory,
	// whenever that bound has changed by 1 MiB or more. nil sets no limit.
	LimitHeap func(bytes int64) int64
	// HeapSize returns the number of bytes that LimitHeap bounds; nil asks Go's runtime.
	HeapSize func() int64
	// HeapPercent sets by how many percent Go's heap grows between two collections, as
	// [debug.SetGCPercent] does; nil means that this stays as it is.
	HeapPercent func(percent int) int
	// FreeHeap collects garbage and returns free memory to the operating system. In a process that
	// has only this server, it is [debug.FreeOSMemory]. Background goroutines call it when much of
	// Go's heap is no longer used, and after large scripts. With nil no memory is returned
	// explicitly, and maxmemory does not bound the memory of scripts.
	FreeHeap func()
}

// Server is one cellserver within this process. [New] creates it, and Run serves.
type Server struct {
	config *config.Config
	logging
	pidFile     string // path of the file that New has written; "" if there is none
	manager     serviceManager
	given       Options // the options of the call of New
	clock       clock.Clock
	keyspace    *keyspace.Keyspace
	remote      RemoteStore // the remote store; nil without the option store
	engine      *session.Engine
	transport   transport.Transport
	kind        transport.Kind
	listening   listening
	admin       adminPort
	http        httpPort
	service     servicePort
	direct      *direct.Transport // the clients within this process, which http and service use
	tls         certificates
	port        atomic.Int64
	began       time.Time
	persistence *manager.Persistence
	replicator  *replicator // the replication of the server; nil if nothing is replicated
	reports     *reporting
	reloading   reloading
	policies    policies
	rules       []*ruleFiles // of the options that are set
	sharing     sharing
	recent      stats.Recent
	lastKeys    lastKeys
	decided     decided
	heap        *process.Heap
	maxMemory   atomic.Int64 // the present value of maxmemory in bytes
	longInput   longInput
	stopping
}

// stopping has the request to stop the server. The channel stop is closed when there is a request.
type stopping struct {
	stopOnce sync.Once
	stopMode atomic.Uint32 // how the server stops, as an env.StopMode
	stop     chan struct{}
}

// New assembles a server, locks its directory of persistence if it uses one, and opens its
// listeners. [Server.Run] loads the files and accepts clients. New registers functions in c, which
// are called when settings change. On an error New closes the listeners, the files and the store
// that it has opened.
func New(c *config.Config, o Options) (*Server, error) {
	table, err := o.commandTable(c)
	if err != nil {
		return nil, err
	}
	s := &Server{
		config: c, began: time.Now(), given: o,
		heap:     process.NewHeap(process.HeapOptions{Limit: o.LimitHeap, Size: o.HeapSize, Percent: o.HeapPercent, Free: o.FreeHeap}),
		stopping: stopping{stop: make(chan struct{})},
	}
	if o.FS == nil {
		if err := checkDir(c); err != nil {
			return nil, err
		}
	}
	if err := s.openLog(o.Log); err != nil {
		return nil, err
	}
	logIdle(c, o.IdleVariables, s.log)
	s.persistence = s.newPersistence()
	if err := s.persistence.Lock(); err != nil {
		return nil, errors.Join(err, s.abandon())
	}
	if err := s.listen(o.Listeners); err != nil {
		return nil, errors.Join(err, s.abandon())
	}
	if err := s.persistence.Read(); err != nil {
		return nil, errors.Join(err, s.abandon())
	}
	if err := s.assemble(o.Clock, o.OpenStore, table); err != nil {
		return nil, errors.Join(err, s.abandon())
	}
	if o.Node != nil {
		s.engine.Options.Node = o.Node
	}
	if err := s.persistence.Prepare(); err != nil {
		return nil, errors.Join(err, s.abandon())
	}
	if err := s.openTransport(); err != nil {
		return nil, errors.Join(err, s.abandon())
	}
	s.engine.SetLoading(!s.persistence.Loaded())
	s.putInForce()
	if err := s.start(s.prepareUsers); err != nil {
		return nil, errors.Join(err, s.abandon())
	}
	if err := s.start(s.preparePolicies); err != nil {
		return nil, errors.Join(err, s.abandon())
	}
	if err := s.startRules(); err != nil {
		return nil, errors.Join(err, s.abandon())
	}
	if err := s.startTLS(); err != nil {
		return nil, errors.Join(err, s.abandon())
	}
	s.service.tally = tallyOf(c)
	if err := s.openAdmin(o.AdminListeners); err != nil {
		return nil, errors.Join(err, s.abandon())
	}
	s.direct = direct.New(s.engine)
	if err := s.openHTTP(); err != nil {
		return nil, errors.Join(err, s.abandon())
	}
	if err := s.openService(); err != nil {
		return nil, errors.Join(err, s.abandon())
	}
	s.recent.Started(s.usedMemory())
	c.OnCommit(func(name string) bool { return slices.Contains(portOptions, name) }, s.preparePorts)
	s.logExposure()
	c.OnChange(func() {
		s.putInForce()
		s.logExposure()
	})
	s.manager = serviceManagerOf(c, os.Getenv(notifySocket))
	s.writePIDFile()
	return s, nil
}

// commandTable creates the table of commands and applies the renames of the configuration. With the
// option store, the table has only the commands that need no keys of this server: see
// [command.NewStoreTable].
func (o *Options) commandTable(c *config.Config) (*command.Table, error) {
	groups, newTable := commands.Groups, command.NewRenamedTable
	if o.Groups != nil {
		groups = o.Groups
	}
	if c.Remote() {
		newTable = command.NewStoreTable
	}
	table, err := newTable(groups(), c.Renamed())
	if err != nil {
		return nil, fmt.Errorf("option %q: %w", "rename-command", err)
	}
	return table, nil
}

// assemble creates the clock, the keyspace, the store that the option store names, replication, and
// the engine with the commands in table, and connects them. source is the clock to use; nil stands
// for the one that the option clock names. open opens the store; nil uses [remote.Open].
func (s *Server) assemble(source clock.Clock, open func(remote.Options) (RemoteStore, error), table *command.Table) error {
	c := s.config
	s.clock = source
	var manual *clock.Manual
	switch {
	case source != nil:
	case c.ManualClock():
		manual = clock.NewManual(clock.ManualStart)
		s.clock = manual
	default:
		o := s.given.Time
		o.Start, o.OnStep = s.persistence.ClockStart(), s.clockStepped
		s.clock = clock.NewSystem(o)
	}
	s.keyspace = keyspace.New(keyspace.Options{
		Databases: int(c.Number("databases")),
		Clock:     s.clock,
		MaxMemory: c.Number("maxmemory"),
		Swept: func(longest, all time.Duration) {
			s.recent.AddSwept(all)
			s.noteEvent(stats.ExpireEvent, longest)
		},
	})
	o := env.Options{
		Stopwatch: s.stopwatch,
		Now:       s.clock.Now,
		Civil:     func() limit.Instant { return s.clock.Civil(s.clock.Now()) },
		Settings:  c,
		Report: func(u *acl.User, from, name string, given map[string][]string) ([]byte, error) {
			return s.reports.answer(u, from, name, given)
		},
		Process:    newProcessInfo(s),
		Stop:       s.stopAs,
		MakeRoom:   s.makeRoom,
		Log:        s.log,
		ScriptRoom: s.scriptRoom,
		FreeHeap:   s.given.FreeHeap,
		Reload:     s.reloadFor,
		Groups:     c.Groups(),
		Rewrite:    s.Rewrite,
	}
	if file := userfile.At(c.Path("aclfile")); file != nil {
		o.UserFile = file
	}
	if manual != nil {
		o.MoveClock = func(d time.Duration) error { return manual.Advance(d, s.engine.SettleWaits) }
		o.Machine = machine{s}
	}
	if !c.Remote() {
		s.keyspaceOptions(&o)
	} else if err := s.openRemote(open); err != nil {
		return err
	} else {
		s.useRemote(&o)
	}
	s.openReplication(&o)
	s.connectPersistence()
	if s.given.Env != nil {
		s.given.Env(&o)
	}
	s.engine = session.NewEngine(o, table)
	s.addFigures()
	s.replicator.begin()
	s.reports = newReporting(s)
	s.engine.Changed("start", "cellserver "+Version+" has started", "")
	return nil
}

// machine implements [env.Machine] by the stopwatch of the server.
type machine struct{ s *Server }

// Now implements [env.Machine].
func (m machine) Now() limit.Instant {
	return limit.Instant(m.s.began.UnixNano()).Add(m.s.stopwatch())
}

// AfterFunc implements [env.Machine].
func (machine) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return time.AfterFunc(d, f).Stop
}

// keyspaceOptions sets options in o for a server without the option store, whose own keyspace
// decides asks and stores policies. It also creates the registry of policies.
func (s *Server) keyspaceOptions(o *env.Options) {
	s.openPolicies(o)
	wrap := s.given.WrapStore
	if wrap == nil {
		wrap = func(store env.Local) env.Local { return store }
	}
	o.NewStore = func() env.Store { return wrap(local.NewStore(s.keyspace)) }
	if s.config.Kept() {
		o.Persistence = s.persistence
	}
	o.ObserveExpiry = func(observer env.Observer) { s.keyspace.ObserveSweep(observer) }
	o.Ledger = s.keyspace.Ledger()
	o.SuspendExpiry = s.keyspace.SuspendExpiry
}

// abandon closes the listeners, the files, the store and the keyspace that New has opened before it
// failed.
func (s *Server) abandon() (err error) {
	err = closeAll(s.listening.open)
	for _, l := range slices.Concat(s.admin.listeners, s.http.listeners, s.service.listeners) {
		err = errors.Join(err, l.Close())
	}
	if s.transport != nil {
		// No connection was accepted, so Shutdown only ends the event loops.
		err = errors.Join(err, s.transport.Shutdown(context.Background()))
	}
	err = errors.Join(err, s.persistence.Close())
	s.closeRemote()
	if s.keyspace != nil {
		s.keyspace.Close()
	}
	if s.logFile != nil {
		err = errors.Join(err, s.logFile.Close())
	}
	return err
}

// openTransport creates the transport that the option transport names, and sets s.kind and
// s.transport.
func (s *Server) openTransport() error {
	s.kind = transport.Kind(s.config.Value("transport")).Resolve()
	t, err := newTransport(s.kind, s.engine, s.transportLimits(), s.config.Loops(), s.log)
	if err != nil {
		return err
	}
	s.transport = t
	return nil
}

// newTransport creates a transport of the given kind, which must be resolved. loops is the number
// of event loops; a transport of goroutines has none. newTransport returns an error if the
// operating system lacks the kind.
func newTransport(kind transport.Kind, h transport.Handler, lim transport.Limits, loops int, log *slog.Logger) (transport.Transport, error) {
	switch kind {
	case transport.KindGoroutine:
		return goroutine.New(h, lim, log, time.Now), nil
	case transport.KindEpoll:
		return epoll.New(h, lim, loops, log, time.Now)
	default:
		return nil, fmt.Errorf("unknown kind of transport %q", kind)
	}
}

// Run serves until Stop is called, ctx ends, the files cannot be loaded, or a listener that New has
// opened fails. Then it runs the commands that clients have already sent, for shutdown-timeout at
// most, writes the final snapshot if one is needed, and closes everything. It returns the errors of
// all these steps. It waits for every goroutine that it has started. Run may be called only once.
func (s *Server) Run(ctx context.Context) error {
	housekeeping, endHousekeeping := context.WithCancel(context.Background())
	replicating, endReplication := context.WithCancel(context.Background())
	var background, replication sync.WaitGroup
	failed := make(chan error, 1)
	fail := func(err error) {
		select {
		case failed <- err:
		default: // Run reports the error that came first
		}
	}
	var loading sync.WaitGroup
	loading.Go(func() {
		if err := s.load(); err != nil {
			fail(err)
			return
		}
		background.Go(func() { s.keyspace.Run(housekeeping) })
		background.Go(func() { s.janitor(housekeeping) })
		background.Go(func() { s.persistence.Run(housekeeping) })
		if s.replicator != nil {
			replication.Go(func() { s.replicator.run(replicating) })
		}
	})
	background.Go(func() { s.reports.run(housekeeping) })
	background.Go(func() { s.followPolicies(housekeeping) })
	background.Go(func() { s.followRules(housekeeping) })
	background.Go(func() { s.share(housekeeping) })
	s.listening.begin(func(l *listener) { background.Go(func() { s.serve(l, fail) }) })
	s.serveAdmin(background.Go, fail)
	s.serveHTTP(background.Go, fail)
	s.serveService(background.Go, fail)
	var err error
	select {
	case <-ctx.Done():
	case <-s.stop:
	case err = <-failed:
	}
	s.listening.end()
	s.persistence.LeaveLoading()
	err = errors.Join(err, s.drain())
	loading.Wait()
	endReplication()
	replication.Wait()
	s.engine.EndExecutions()
	if s.engine.EndScripts() {
		s.log.Warn("a script was stopped before its end; its changes are not kept, and no final snapshot is written")
	} else if s.config.Kept() {
		err = errors.Join(err, s.persistence.SaveAtStop(env.StopMode(s.stopMode.Load())))
	}
	err = errors.Join(err, s.endAdmin())
	endHousekeeping()
	background.Wait()
	s.engine.Close()
	s.closeRemote()
	err = errors.Join(err, s.persistence.Close())
	s.keyspace.Close()
	err = errors.Join(err, s.removePIDFile())
	s.limits.ReportLeftOut(true)
	s.log.Info("stopped")
	if s.logFile != nil {
		err = errors.Join(err, s.logFile.Close())
	}
	return err
}

// load loads the files, while clients get LOADING errors, applies the policy file, and then reports
// that the server is ready. If New has found nothing to load, it only reports that. It returns nil
// if the server stops before loading is done.
func (s *Server) load() error {
	if !s.persistence.Loaded() {
		s.log.Info("loading; clients get -LOADING meanwhile", "addresses", s.addresses())
		err := s.persistence.Load()
		switch {
		case s.persistence.Left():
			return nil // the server is stopping and does not need the state
		case err != nil:
			return err
		}
		if err := s.policies.registry.Fault(); err != nil {
			return err
		}
		s.warnOfHistory()
		s.settlePoliciesUnless(command.HaltReadOnly) // the policies are applied before the first call
		s.engine.SetLoading(false)
		if s.policies.file.Due() { // the file was read again in the meantime
			s.settlePolicies()
		}
	}
	s.awaitPolicies()
	s.welcome()
	s.tellManager(ready)
	return nil
}

// drain stops accepting connections, ends the waits of blocked clients, and waits until the
// transport has processed what clients have sent, for shutdown-timeout at most. Connections that
// take longer are aborted, which is no error.
func (s *Server) drain() error {
	limit := s.config.Seconds("shutdown-timeout")
	s.tellManager("STOPPING=1\n")
	s.log.Info("stopping", "clients_may_take", limit.String())
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	s.engine.Drain()
	var ports sync.WaitGroup
	ports.Go(func() { s.endHTTP(ctx) })
	ports.Go(func() { s.endService(ctx) })
	defer func() {
		ports.Wait()
		_ = s.direct.Shutdown(ctx) // clients whose connections were aborted are not an error
	}()
	if err := s.transport.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("closing connections: %w", err)
	}
	return nil
}

// stopAs makes Run end, as Stop does. mode says whether Run writes a snapshot before it returns.
func (s *Server) stopAs(mode env.StopMode) {
	s.stopMode.Store(uint32(mode))
	s.Stop()
}

// Stop makes Run end, and returns at once. It may be called by any goroutine, any number of times.
func (s *Server) Stop() { s.stopOnce.Do(func() { close(s.stop) }) }

// janitor enforces the limits of clients, bounds the memory and updates periodic statistics, until
// ctx ends.
func (s *Server) janitor(ctx context.Context) {
	const period, watch = time.Second, 100 * time.Millisecond
	tick, look := time.NewTicker(period), time.NewTicker(watch)
	defer tick.Stop()
	defer look.Stop()
	longInput, pause := s.engine.LongInput(), time.NewTimer(s.untilNextLook())
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-longInput:
			s.boundLongInput()
			longInput = nil
			pause.Reset(s.untilNextLook())
		case <-pause.C:
			if s.boundLongInput() {
				pause.Reset(s.untilNextLook())
			} else {
				longInput = s.engine.LongInput()
			}
		case <-look.C:
			if s.engine.Limits().ClientMemory > 0 {
				s.engine.EvictClients(s.clientMemory())
			}
		case <-tick.C:
			s.engine.CloseOverdue(s.engine.Options.Now())
			s.engine.Tick(period)
			s.beat(period)
			s.keyspace.SetBeside(s.besideKeys())
			s.boundHeap()
			s.longInput.most.Store(0)
			s.tendHeap()
			transport.TrimInput()
			s.limits.ReportLeftOut(false)
		}
	}
}

// beat updates the figures about recent seconds, such as the rates of traffic. The janitor calls it
// after each period. Any goroutine may call it.
func (s *Server) beat(period time.Duration) {
	now := s.Traffic()
	input, output := int64(0), int64(0)
	if now.Pending+now.Unread > 0 {
		input, output = s.engine.LargestBuffers()
	}
	s.recent.Tick(trafficOf(now), input, output, s.reports.used.Load(), period)
}

// Engine returns the engine. It is for tests and for generators of documentation.
func (s *Server) Engine() *session.Engine { return s.engine }

// Keyspace returns the keyspace. It is for tests. With the option store it is the keyspace of
// fail-policy local.
func (s *Server) Keyspace() *keyspace.Keyspace { return s.keyspace }

func (s *Server) clockStepped(step time.Duration) {
	s.log.Warn("the wall clock was stepped; decisions continue with the server's own clock", "step", step.String())
}

// stopwatch returns the time since New was called. It never decreases.
func (s *Server) stopwatch() time.Duration { return time.Since(s.began) }

// noteEvent records for LATENCY that the event e took the duration took, if that is at least
// latency-monitor-threshold. It does nothing before the engine exists. Any goroutine may call it.
func (s *Server) noteEvent(e stats.Event, took time.Duration) {
	if s.engine != nil && s.engine.Events.Watches(took) {
		s.engine.Events.Note(e, took, s.engine.CivilMillis()/1000)
	}
}
