package command

import (
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/resp"
)

// A command that asks the store one question has a Parse and an Answer function. Parse creates the
// ask with [Call.NewAsk] and fills it from the arguments, without touching the store. The store, or
// a Remote, then decides the ask and fills in the answer. Answer writes the reply. It may run long
// after the arguments of the command are gone, so it takes everything it needs from the ask.
//
// The ask refers to the arguments and to memory of the worker that the next Parse reuses. An ask
// that a Remote decides gets copies of its bytes before that: see [decide.Ask.Own].

// NewAsk returns an ask about key, for the Parse function of the running command to fill in. It
// sets the family to f and the database to the client's. In a table whose asks a Remote decides,
// the ask comes from the worker's Collector; otherwise it is the worker's only one, which the next
// call reuses. Only the common fields are reset: fields of another family may still have the values
// of an earlier call.
func (c *Call) NewAsk(f decide.Family, key []byte) *decide.Ask {
	if c.Collector != nil {
		return c.collected(f, key)
	}
	a := &c.ask
	a.DB, a.Key, a.Family, a.Err, a.Foreign = c.Client.Selected(), key, f, nil, 0
	a.ID.Token, a.Reserve.TTL, a.Lapsed, a.Counts, a.Keep, a.Rank = nil, 0, 0, false, 0, 0
	return a
}

// collected does what NewAsk does, for a command whose ask a Remote decides: the Collector makes
// the ask.
func (c *Call) collected(f decide.Family, key []byte) *decide.Ask {
	a := c.Collector.NewAsk()
	a.DB, a.Key, a.Family, a.Foreign = c.Client.Selected(), key, f, 0
	return a
}

// collects returns the Run function of cmd for a table whose asks a Remote decides. The function
// gives the ask to the Collector. If cmd has its own Run and a call may wait in the queue of its key, that Run is
// called instead, without the Collector. It may still call [Call.CollectAsk].
func collects(cmd *Command) func(c *Call) {
	run, queues := cmd.Run, cmd.Queues
	if queues == nil {
		queues = cmd.Waits
	}
	if run == nil || queues == nil {
		return (*Call).Collect
	}
	return func(c *Call) {
		if !c.MayWait() || !queues(c.Server, c.Args) {
			c.Collect()
			return
		}
		collector := c.Collector
		c.Collector, c.beside = nil, collector
		defer func() { c.Collector, c.beside = collector, nil }()
		run(c)
	}
}

// Collect parses the running command and adds its ask to the Collector, which replies after a
// Remote has decided the ask. If the arguments are wrong, Collect drops the ask and replies with
// the error at once.
func (c *Call) Collect() {
	if err := c.Cmd.Parse(c); err != "" {
		c.Collector.Drop()
		c.Fail(err)
		return
	}
	c.Collector.Add(c)
}

// CollectAsk has ask make and fill in the ask of the running command, as Parse does, and adds it to the Collector. It is for
// the Run function of a command that finds that its call does not wait after all, on a server with a Remote.
func (c *Call) CollectAsk(ask func()) {
	c.Collector = c.beside
	ask()
	c.Collector.Add(c)
}

// OwnAsk returns the worker's own ask, which Parse of the running command has filled in and which
// is decided at once. It is for the Run function of a command that may wait, and of the commands
// that are called most often. Such a Run repeats the body of asks, because each additional function
// call on this hot path costs measurable time.
func (c *Call) OwnAsk() *decide.Ask { return &c.ask }

// Conclude replies to the decided ask a: with its error, or else by calling answer. The error of a Joint may be that of
// its program, so answer replies with it.
func (c *Call) Conclude(a *decide.Ask, answer func(*Call, *decide.Ask)) {
	if a.Err != nil && a.Family != decide.Joint {
		c.Fail(StoreError(a.Err))
		return
	}
	answer(c, a)
}

// asks returns the Run function of a command that asks one question: it calls parse, has the store
// decide the ask at once, and calls answer. An error of parse or of the decision is the reply
// instead.
func asks(parse func(*Call) resp.Error, answer func(*Call, *decide.Ask)) func(*Call) {
	return func(c *Call) {
		if err := parse(c); err != "" {
			c.Fail(err)
			return
		}
		a := &c.ask
		if c.Store.Decide(a); a.Err != nil {
			c.Fail(StoreError(a.Err))
			return
		}
		answer(c, a)
	}
}
