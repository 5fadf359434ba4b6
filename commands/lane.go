package commands

import (
	"github.com/cellserver/cellserver/commands/stats"

	"github.com/cellserver/cellserver/resp"
)

// Lane is the scratch of one feeding goroutine: its view of the store, its
// buffers and its share of the statistics. It is used by one goroutine at a time.
type Lane struct {
	Worker
	input
	limiterScratch
	scriptScratch
	gateState
	effectState
	tally
	trackingScratch

	ctx    Ctx
	w      resp.Writer
	hash   hashCall
	sorted sortedCall

	served []servedPop // those who waited for elements and are to be answered

	posting posting // scratch of PUBLISH, and what is still to be published

}

func (e *Engine) newLane() *Lane {
	l := &Lane{
		Worker: Worker{Store: e.opts.NewStore(), server: &e.Server},
		tally:  tally{counts: make([]stats.Counter, len(e.table.all)), sample: sampleEvery},
		input:  input{args: make([][]byte, 0, aheadArgs)},
	}
	l.Owner = l
	if e.opts.Persistence != nil {
		l.journal, _ = l.Store.(recording)
	}
	l.w.OnError = l.noteError
	l.onError, l.host.w.OnError = l.w.OnError, l.w.OnError
	l.host.w.Most = maxScriptReply
	l.ctx = Ctx{Worker: &l.Worker, W: &l.w}
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
	*Worker
	Client *Client
	Cmd    *Command
	Args   [][]byte // Args[0] is the name as it was sent
	W      *resp.Writer
	fail   bool
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
