package commands

import "github.com/cellserver/cellserver/commands/command"

// A script may lack memory because of replies that others have not taken yet. As long as
// nothing of it can have been noticed it is run again from its beginning once there is
// room: it waits as [budget.Budget] has others wait. One whose last result was large asks
// for as much before it begins, where that does not fit at once.

// Waits implements [lua.Waiter].
func (h *scriptHost) Waits() bool {
	h.waits = h.mayWait && !h.acted && (h.alone == nil || h.alone.retries < maxRetries) && engineOf(h.c.Server).large.Size() > h.memory.Unused()
	return h.waits
}

// leastResult is from how many bytes on the size of a result is remembered.
const leastResult = 1 << 20

// noteResult remembers how large the result of a script was.
func (s *script) noteResult(n int) {
	if n < leastResult {
		n = 0
	}
	if s.result.Load() != int64(n) {
		s.result.Store(int64(n))
	}
}

// reserve asks for the memory of the result of a script whose last one was large, and
// some more. It returns how much that is, 0 if it was granted at once or is not needed.
func reserve(c *command.Call, call *scriptCall) (need int64) {
	need = call.script.result.Load()
	if need == 0 || c.Client.Exclusive {
		return 0
	}
	need += need / 4
	if call.memory = engineOf(c.Server).large.Take(need); call.memory == nil {
		return need
	}
	return 0
}

// runLater parks the session until there is room for the script, and then runs it alone.
func runLater(c *command.Call, call *scriptCall, n int, need int64) {
	cmd, own := c.Cmd, command.CloneArgs(c.Args)
	a := parkAlone(c, again(c, cmd, own, call, n))
	a.parked.Kept = command.ArgsCost(own)
	engineOf(c.Server).enqueueWith(a, need)
}

// again returns what runs a script alone that has been called with own, of which the
// first n arguments are its keys.
func again(c *command.Call, cmd *command.Command, own [][]byte, call *scriptCall, n int) func(c *command.Call) {
	later := *call
	later.memory = nil
	later.keys, later.args = own[3:3+n], own[3+n:]
	return func(c *command.Call) {
		c.Cmd, c.Args = cmd, own
		if err := refuses(c, &later); err != "" {
			c.Fail(err)
			return
		}
		runScript(c, &later)
	}
}

// enqueueWith has a run once need bytes are granted to its reply.
func (e *Engine) enqueueWith(a *alone, need int64) {
	e.Spawn(func() {
		a.memory = e.large.Ask(need)
		if a.parked.Gone.Load() {
			a.memory.End()
			return
		}
		e.enqueueAlone(a)
	})
}

// retry has a, which has lacked memory, run once all is free that others' replies take.
func (e *Engine) retry(a *alone) {
	a.memory.End()
	a.memory = nil
	a.retries++
	e.enqueueWith(a, largeRoom(&e.Server))
}

// maxRetries is how often a script is run again that has lacked memory.
const maxRetries = 3
