package session

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
	gateState
	effectState
	tally

	ctx command.Call
	w   resp.Writer
}

func (e *Engine) newLane() *Lane {
	l := &Lane{
		Worker: command.Worker{Store: e.Opts.NewStore(), Server: &e.Server},
		tally:  tally{counts: make([]stats.Counter, len(e.Commands.Entries)), sample: sampleEvery},
		input:  input{args: make([][]byte, 0, command.AheadArgs)},
	}
	l.Lane, l.Call = l, &l.ctx
	if e.Opts.Persistence != nil {
		l.Journal, _ = l.Store.(command.Recording)
	}
	l.OnError = l.noteError
	l.w.OnError = l.OnError
	l.ctx = command.Call{Worker: &l.Worker, W: &l.w}
	l.Equip()
	e.lanesMu.Lock()
	if len(e.lanes) == 0 {
		e.countedSince = e.Opts.Now()
	}
	e.lanes = append(e.lanes, l)
	e.lanesMu.Unlock()
	return l
}
