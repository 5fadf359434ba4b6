package commands

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/stats"
	"github.com/cellserver/cellserver/resp"
)

// Lane is the scratch of one feeding goroutine: its view of the store, its
// buffers and its share of the statistics. It is used by one goroutine at a time.
type Lane struct {
	command.Worker
	input
	scriptScratch
	gateState
	effectState
	tally
	trackingScratch

	ctx command.Call
	w   resp.Writer

	served []servedPop // those who waited for elements and are to be answered

	posting posting // scratch of PUBLISH, and what is still to be published
}

func (e *Engine) newLane() *Lane {
	l := &Lane{
		Worker: command.Worker{Store: e.Opts.NewStore(), Server: &e.Server},
		tally:  tally{counts: make([]stats.Counter, len(e.Commands.Entries)), sample: sampleEvery},
		input:  input{args: make([][]byte, 0, command.AheadArgs)},
	}
	l.Owner = l
	e.Commands.Equip(&l.Worker)
	if e.Opts.Persistence != nil {
		l.Journal, _ = l.Store.(command.Recording)
	}
	l.w.OnError = l.noteError
	l.onError, l.host.w.OnError = l.w.OnError, l.w.OnError
	l.host.w.Most = command.MaxScriptReply
	l.ctx = command.Call{Worker: &l.Worker, W: &l.w}
	e.observe(l)
	e.lanesMu.Lock()
	if len(e.lanes) == 0 {
		e.countedSince = e.Opts.Now()
	}
	e.lanes = append(e.lanes, l)
	e.lanesMu.Unlock()
	return l
}
