package command

import "github.com/cellserver/cellserver/resp"

// Call is one command being run: who calls, with what, and where the reply goes.
type Call struct {
	*Worker
	Client *Client
	Cmd    *Command
	Args   [][]byte // Args[0] is the name as it was sent
	W      *resp.Writer
	Failed bool
}

// Fail replies with an error and counts the call as failed.
func (c *Call) Fail(e resp.Error) {
	c.Failed = true
	if e == ErrNotKept {
		e = c.Refusal()
	}
	c.W.Error(e)
}

// OK replies +OK.
func (c *Call) OK() { c.W.Status("OK") }
