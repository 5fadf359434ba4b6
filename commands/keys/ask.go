package keys

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/resp"
)

// This file has the asks that the commands on keys send to a Remote, and their replies. The field
// Run of each command does the same with the store.

// ask creates an ask that is not about a limiter.
func ask(c *command.Call, op decide.Op, key []byte) *decide.Ask {
	a := c.NewAsk(decide.Admin, key)
	a.Admin = decide.AdminCall{Op: op}
	return a
}

// askOne returns the field Parse of a command on one key.
func askOne(op decide.Op) func(c *command.Call) resp.Error {
	return func(c *command.Call) resp.Error {
		ask(c, op, c.Args[1])
		return ""
	}
}

// askEach returns the field Parse of a command that makes the same ask for each of its keys.
func askEach(op decide.Op) func(c *command.Call) resp.Error {
	return func(c *command.Call) resp.Error {
		next := ask(c, op, c.Args[1])
		for _, key := range c.Args[2:] {
			next.Next = ask(c, op, key)
			next = next.Next
		}
		return ""
	}
}

// askAll returns the field Parse of a command without keys and parameters.
func askAll(op decide.Op) func(c *command.Call) resp.Error {
	return func(c *command.Call) resp.Error {
		ask(c, op, nil)
		return ""
	}
}

// answerCount replies with the number of asks for which ok returns true.
func answerCount(c *command.Call, a *decide.Ask, ok func(r *decide.AdminResult) bool) {
	n := int64(0)
	for ; a != nil; a = a.Next {
		if a.Err != nil {
			c.Fail(command.StoreError(a.Err))
			return
		}
		if ok(&a.Result) {
			n++
		}
	}
	c.W.Int(n)
}

func answerDone(c *command.Call, a *decide.Ask) {
	answerCount(c, a, func(r *decide.AdminResult) bool { return r.Done })
}

func answerFound(c *command.Call, a *decide.Ask) {
	answerCount(c, a, func(r *decide.AdminResult) bool { return r.Found })
}

func answerType(c *command.Call, a *decide.Ask) {
	c.W.Status(a.Result.Text)
}

func answerSize(c *command.Call, a *decide.Ask) {
	c.W.Int(a.Result.Number)
}
