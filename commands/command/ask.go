package command

import "github.com/cellserver/cellserver/decide"

// NewAsk returns an ask about the key, for the running command to fill in and for Parse
// only. Of what it had before it keeps what the family of another call has left there.
func (c *Call) NewAsk(f decide.Family, key []byte) *decide.Ask {
	a := &c.ask
	if c.Collector != nil {
		a = c.Collector.NewAsk()
	}
	a.DB, a.Key, a.Family, a.Next, a.Err = c.Client.Selected(), key, f, nil, nil
	return a
}

// collects returns Run of a command where a Remote decides what it asks. A call that may
// wait has Run as it was.
func collects(cmd *Command) func(c *Call) {
	run := cmd.Run
	if cmd.Waits == nil {
		return (*Call).Collect
	}
	return func(c *Call) {
		if c.Cmd.Waits(c.Args) && c.MayWait() {
			run(c)
			return
		}
		c.Collect()
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
