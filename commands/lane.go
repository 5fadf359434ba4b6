package commands

import (
	"sync/atomic"

	"github.com/cellserver/cellserver/commands/stats"
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// Lane is the scratch of one feeding goroutine: its view of the store, its
// buffers and its share of the statistics. It is used by one goroutine at a time.
type Lane struct {
	Store    Store
	engine   *Engine
	ctx      Ctx
	w        resp.Writer
	args     [][]byte // room for the arguments of ahead
	slots    [aheadMost]ahead
	ahead    []ahead  // those of slots that are in use
	keys     [][]byte // scratch of prefetch
	busy     bool     // a script keeps the gate closed for long: few commands may run
	work     int      // units done in this batch: see work.go
	text     []byte   // scratch for a key or value being read
	throttle throttleCall
	window   slidingwindow.Call
	bucket   tokenbucket.Call
	lease    concurrency.Call
	hash     hashCall
	sorted   sortedCall
	multi    multiArgs
	refs     []KeyRef // scratch of a script's Hold

	host       scriptHost
	lastScript scriptMemo

	// For scripts that may take long; see aside.
	aside       *aside
	pinned      bool // who feeds holds its thread
	gated       bool // the gate is closed by this lane, for the rest of its batch
	shutOut     bool // the command has to wait for another who has closed it
	asideEffect bool // what ran aside had an effect

	// The run of equal commands that is not yet in counts, so that a pipeline of
	// one command costs one atomic addition.
	runCmd    *Command
	runLen    int64
	runDenied int64
	sample    int // commands until the next timed one

	// What RL.TOP shows: the tables, and the keys of this batch on their way there.
	denied, calls            topTable
	noted, notedMany, called []notedKey
	refusals                 int // of this batch
	untilCall                int

	served []servedPop // those who waited for elements and are to be answered

	posting posting // scratch of PUBLISH, and what is still to be published

	observer observer // tells tracking clients what this lane changes
	reading  reading

	// What is written down of effects; journal is nil where nothing is.
	journal  recording
	effects  uint64        // records seen so far
	owed     []effectReply // of this batch
	answered uint64        // the position that a parked command's reply waits for

	counts []stats.Counter // by command id

	// How many errors the writers of this lane have written, and how many of them had
	// been when the running command began.
	errors, errorsSeen int64
	onError            func(e resp.Error, from resp.Origin) // is noteError

	hits   atomic.Int64
	misses atomic.Int64
}

func (e *Engine) newLane() *Lane {
	l := &Lane{
		Store:  e.opts.NewStore(),
		engine: e,
		counts: make([]stats.Counter, len(e.table.all)),
		args:   make([][]byte, 0, aheadArgs),
		sample: sampleEvery,
	}
	if e.opts.Persistence != nil {
		l.journal, _ = l.Store.(recording)
	}
	l.w.OnError = l.noteError
	l.onError, l.host.w.OnError = l.w.OnError, l.w.OnError
	l.host.w.Most = maxScriptReply
	l.ctx = Ctx{Lane: l, W: &l.w}
	e.observe(l)
	e.lanesMu.Lock()
	if len(e.lanes) == 0 {
		e.topSince = e.opts.Now()
	}
	e.lanes = append(e.lanes, l)
	e.lanesMu.Unlock()
	return l
}

// Ctx is one command being run: who calls, with what, and where the reply goes.
type Ctx struct {
	*Lane
	S    *Session
	Cmd  *Command
	Args [][]byte // Args[0] is the name as it was sent
	W    *resp.Writer
	fail bool
}

// Fail replies with an error and counts the call as failed.
func (c *Ctx) Fail(e resp.Error) {
	c.fail = true
	if e == errNotKept {
		e = c.refusal()
	}
	c.W.Error(e)
}

// OK replies +OK.
func (c *Ctx) OK() { c.W.Status("OK") }
