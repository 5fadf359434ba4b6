package servers

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote/records"

	_ "embed" // the script
)

// Key is the key of the hash with the records of servers, without the prefix of the engine.
const Key = records.KeyPrefix + "servers"

const (
	// Period is the time between two beats of a server, at each of which it writes its record.
	Period = time.Second
	// Live is the time for which a server counts as live after its latest beat.
	Live = 5 * time.Second
	// leastPeriod is the minimum time between two beats.
	leastPeriod = 50 * time.Millisecond
	// timeout is the time limit of a beat.
	timeout = time.Second
	// maxServers is the maximum number of servers of one engine.
	maxServers = 1000
)

//go:embed beat.lua
var beatScript string

// ScriptName returns the name of script, one of this package: beat, publish or summaries. It returns "" for another
// script. It is for engines in memory.
func ScriptName(script string) string {
	switch script {
	case beatScript:
		return "beat"
	case publishScript:
		return "publish"
	case summariesScript:
		return "summaries"
	}
	return ""
}

// Engine runs scripts where the records are.
type Engine interface {
	// Eval runs a script in the engine, as [records.Engine] describes.
	Eval(ctx context.Context, script string, keys, args []string) (reply any, err error)
}

// Options configures a [List]. Engine, ID and Own are required.
type Options struct {
	Engine Engine
	// ID is the random id of this run of the server.
	ID string
	// Own returns the record of this server. It must not block.
	Own func() Record
	// Counted, if not nil, is called with [List.Count] after each beat that has succeeded. It must not block.
	Counted func(n int)
	// Log gets messages for operators. The default is no log.
	Log *slog.Logger
}

// List is the list of the servers of an engine. It keeps the record of this server in the engine. Any goroutine may
// call its methods.
type List struct {
	o    Options
	seen atomic.Pointer[[]Server]
	// fault is the reason why the latest beat has failed; nil or "" if it has not.
	fault atomic.Pointer[string]
	count count
	soon  chan struct{} // has an element if a beat is needed before the period has passed

	mu      sync.Mutex
	waiting []chan []Server // the calls that wait for the result of the next beat; guarded by mu
}

// New returns the list of a server. [List.Run] fills it.
func New(o Options) *List {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &List{o: o, soon: make(chan struct{}, 1)}
}

// Seen returns the servers that were live at the latest successful beat, including this one, sorted by name. It returns
// nil before the first such beat. The caller must not change the result.
func (l *List) Seen() []Server {
	if all := l.seen.Load(); all != nil {
		return *all
	}
	return nil
}

// Count returns the number of live servers, 0 before the first beat that has succeeded. While the engine does not answer,
// and for [Live] after that, it does not decrease.
func (l *List) Count() int { return int(l.count.n.Load()) }

// Fault returns the reason why the latest beat has failed; "" if it has not.
func (l *List) Fault() string {
	if is := l.fault.Load(); is != nil {
		return *is
	}
	return ""
}

// Changed says that the record of this server has changed, so that the next beat is soon. It does not block.
func (l *List) Changed() {
	select {
	case l.soon <- struct{}{}:
	default:
	}
}

// Run keeps the record of this server in the engine until ctx ends, and then removes it.
func (l *List) Run(ctx context.Context) {
	failed := 0 // number of beats since the latest one that has succeeded
	for {
		if l.beat(ctx) {
			if failed >= int(Live/Period) {
				l.o.Log.Info("the store has the record of this server again")
			}
			failed = 0
		} else if failed++; failed == int(Live/Period) {
			l.o.Log.Warn("the store does not have the record of this server: other servers take it for stopped", "error", l.Fault())
		}
		if !pause(ctx, leastPeriod, nil) || !pause(ctx, Period-leastPeriod, l.soon) {
			break
		}
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	_, _ = l.eval(end, "") // if this fails, the record expires
}

// pause waits until the time d has passed or early has an element. It returns false if ctx ends before.
func pause(ctx context.Context, d time.Duration, early <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
	case <-early:
	}
	return true
}

// beat writes the record of this server and reads the records of all servers. It reports whether it
// has succeeded.
func (l *List) beat(ctx context.Context) bool {
	l.mu.Lock()
	waiting := l.waiting
	l.waiting = nil
	l.mu.Unlock()
	own := l.o.Own()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	all, err := l.eval(ctx, own.text())
	fault := ""
	if err != nil {
		fault = err.Error()
		l.count.missed()
	} else {
		l.seen.Store(&all)
		l.count.seen(int64(len(all)), beatOf(all, l.o.ID))
		if l.o.Counted != nil {
			l.o.Counted(l.Count())
		}
	}
	l.fault.Store(&fault)
	for _, one := range waiting {
		one <- all
	}
	return err == nil
}

// beatOf returns the instant at which the server with the given id has written its record; 0 if it is not among all.
func beatOf(all []Server, id string) limit.Instant {
	for i := range all {
		if all[i].ID == id {
			return all[i].Beat
		}
	}
	return 0
}

// eval runs the script, which writes the record with the given text, or removes it if text is "".
func (l *List) eval(ctx context.Context, text string) ([]Server, error) {
	reply, err := l.o.Engine.Eval(ctx, beatScript, []string{Key}, []string{
		l.o.ID, text, millis(Live), strconv.Itoa(maxServers), strconv.Itoa(maxRecord),
	})
	if err != nil {
		return nil, err
	}
	return parseBeat(reply)
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// Await waits until all live servers have the policies of the version v or a later one. If ctx ends before, behind has
// the servers that do not, by their records in the engine, and err is the fault of the latest beat; nil if that was
// successful. This server itself counts as having v.
func (l *List) Await(ctx context.Context, v records.Version) (behind []Server, err error) {
	told := false
	for {
		all, known := l.next(ctx)
		if known {
			told = true
			if behind = l.behind(all, v); len(behind) == 0 {
				return nil, nil
			}
		}
		if ctx.Err() != nil {
			break
		}
	}
	if !told {
		behind = l.behind(l.Seen(), v)
	}
	switch why := l.Fault(); {
	case why != "":
		return behind, errors.New(why)
	case !told:
		return behind, ctx.Err()
	}
	return behind, nil
}

// next returns the servers at a beat that begins after the call. known is false if that beat fails or ctx ends before.
func (l *List) next(ctx context.Context) (all []Server, known bool) {
	result := make(chan []Server, 1)
	l.mu.Lock()
	l.waiting = append(l.waiting, result)
	l.mu.Unlock()
	l.Changed()
	select {
	case <-ctx.Done():
		return nil, false
	case all = <-result:
		return all, all != nil
	}
}

// behind returns the servers in all, without this one, that do not have the policies of the version
// v.
func (l *List) behind(all []Server, v records.Version) (is []Server) {
	for i := range all {
		if all[i].ID != l.o.ID && !all[i].has(v) {
			is = append(is, all[i])
		}
	}
	return is
}
