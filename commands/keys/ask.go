package keys

import (
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/resp"
)

// This file has the Parse and Answer functions of the commands on keys, for a server whose keys a
// Remote has. The Run function of each command does the same with the store.

// ask returns a new ask for the operation op on key. key is nil for an operation on the whole
// database.
func ask(c *command.Call, op decide.Op, key []byte) *decide.Ask {
	a := c.NewAsk(decide.Admin, key)
	a.Admin = decide.AdminCall{Op: op}
	return a
}

// askOne returns the Parse function of a command that applies op to one key.
func askOne(op decide.Op) func(c *command.Call) resp.Error {
	return func(c *command.Call) resp.Error {
		ask(c, op, c.Args[1])
		return ""
	}
}

// askEach returns the Parse function of a command that applies op to each of its keys. The asks
// form a list that is linked by Next.
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

// askAll returns the Parse function of a command that applies op to the whole database, without
// parameters.
func askAll(op decide.Op) func(c *command.Call) resp.Error {
	return func(c *command.Call) resp.Error {
		ask(c, op, nil)
		return ""
	}
}

// answerCount replies with the number of asks in the list a for whose result ok returns true, or
// with the first error.
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
