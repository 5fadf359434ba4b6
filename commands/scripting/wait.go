package scripting

import (
	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/command"
)

// A script may lack memory because other clients have not read their replies yet. If the script has
// had no visible effect, it runs again from its beginning when there is memory, in the queue of
// [budget.Budget]. If the latest result of a script was large, the next call requests as much
// memory before it begins, and waits if it is not granted at once.

// Waits implements [lua.Waiter]. It reports whether the script, which lacks memory, is to run again
// from its beginning. It also sets Again of the worker to the result.
func (h *host) Waits() bool {
	c := h.c
	c.Again = h.mayWait && !h.acted && (c.Exclusive == nil || c.Exclusive.Retries < maxRetries) && c.Server.Large.Size() > h.memory.Unused()
	return c.Again
}

// reserve requests memory for the result of a script whose latest result was large: the size of
// that result plus a quarter. It returns the number of bytes to wait for; 0 if they were granted at
// once or none are needed, and in an exclusive command.
func reserve(c *command.Call, call *invocation) (need int64) {
	need = call.script.result.Load()
	if need == 0 || c.Client.Exclusive {
		return 0
	}
	need += need / 4
	if call.memory = c.Server.Large.Take(need); call.memory == nil {
		return need
	}
	return 0
}

// runLater parks the session until need bytes are granted for the script of call, and then runs the
// script from its beginning as an exclusive command.
func runLater(c *command.Call, call *invocation, need int64) {
	own := command.CloneArgs(c.Args)
	x := c.Server.Host.Exclusives.ParkExclusive(c, again(c.Cmd, own, call))
	x.Wait.Kept += command.ArgsCost(own)
	c.Server.Host.Exclusives.EnqueueWith(x, need)
}

// again returns a function that runs cmd again, and so the script of call from its beginning. own
// has copies of the arguments of cmd. The function checks the permissions again.
func again(cmd *command.Command, own [][]byte, call *invocation) func(c *command.Call) {
	later, n := *call, len(call.keys)
	later.memory = nil
	later.keys, later.args = own[3:3+n], own[3+n:]
	return func(c *command.Call) {
		c.Cmd, c.Args = cmd, own
		if is, forbidden := c.Forbidden(acl.TopLevel, cmd); forbidden { // the rules may have changed since the call
			c.Server.Host.Calls.Reject(c, is.Error(c.Client, cmd))
			return
		}
		if err := later.refused(c); err != "" {
			c.Fail(err)
			return
		}
		scriptsOf(c).runScript(c, &later)
	}
}

// maxRetries is the maximum number of times that an exclusive script which lacks memory runs again.
const maxRetries = 3
