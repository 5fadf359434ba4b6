package command

import (
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/resp"
)

// A command that asks one thing of the store has a Parse and an Answer. Parse makes the ask
// with [Call.NewAsk] and reads the words into it: it touches no store. Whoever decides fills
// in the answer, at once or elsewhere. Answer replies, perhaps long after the words of the
// command are gone, so that it takes all it needs from the ask.
//
// The ask refers to the words, and to room of the worker that the next Parse uses again. One
// that is decided elsewhere is owned before that: see [decide.Ask.Own].

// NewAsk returns an ask about the key, for the running command to fill in and for Parse
// only. Of what it had before it keeps what the family of another call has left there.
func (c *Call) NewAsk(f decide.Family, key []byte) *decide.Ask {
	if c.Collector != nil {
		return c.collected(f, key)
	}
	a := &c.ask
	a.DB, a.Key, a.Family, a.Err, a.Foreign = c.Client.Selected(), key, f, nil, 0
	return a
}

// collected is NewAsk of a command that is decided elsewhere.
func (c *Call) collected(f decide.Family, key []byte) *decide.Ask {
	a := c.Collector.NewAsk()
	a.DB, a.Key, a.Family, a.Foreign = c.Client.Selected(), key, f, 0
	return a
}

// collects returns Run of a command where a Remote decides what it asks. A call that waits
// has Run of its own, if it has one.
func collects(cmd *Command) func(c *Call) {
	run, waits := cmd.Run, cmd.Waits
	if run == nil || waits == nil {
		return (*Call).Collect
	}
	return func(c *Call) {
		if !c.MayWait() || !waits(c.Server, c.Args) {
			c.Collect()
			return
		}
		collector := c.Collector
		c.Collector = nil
		defer func() { c.Collector = collector }()
		run(c)
	}
}

// Collect is Run of a command where a Remote decides what it asks.
func (c *Call) Collect() {
	if err := c.Cmd.Parse(c); err != "" {
		c.Collector.Drop()
		c.Fail(err)
		return
	}
	c.Collector.Add(c)
}

// OwnAsk is the ask that Parse of the running command, which is decided at once, has filled in:
// for Run of a command that may wait, or that is called most. What such a Run does otherwise it
// spells out as asks does, since each call in between is measured on a hot path.
func (c *Call) OwnAsk() *decide.Ask { return &c.ask }

// Conclude answers a, which has been decided: Answer is for what has no error.
func (c *Call) Conclude(a *decide.Ask, answer func(*Call, *decide.Ask)) {
	if a.Err != nil {
		c.Fail(StoreError(a.Err))
		return
	}
	answer(c, a)
}

// asks returns how a command runs that asks one thing and has it decided at once.
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
