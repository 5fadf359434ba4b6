package command

import (
	"strings"

	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/shared"
)

// OK replies +OK.
func (c *Call) OK() { c.W.Status("OK") }

// Fail replies with an error and counts the call as failed.
func (c *Call) Fail(e resp.Error) {
	c.Failed = true
	if e == ErrNotKept {
		e = c.Refusal()
	}
	c.W.Error(e)
}

// WithUsage adds to an error about a value how the command is written. Another error, or none,
// stays.
func (c *Call) WithUsage(e resp.Error) resp.Error {
	if e == "" || !resp.IsArgument(e) {
		return e
	}
	return c.Usage(e)
}

// Usage adds to an error how the command is written.
func (c *Call) Usage(e resp.Error) resp.Error {
	name := strings.ToUpper(strings.ReplaceAll(c.Cmd.Name, "|", " "))
	return resp.WithUsage(e, strings.TrimSpace(name+" "+c.Cmd.Syntax))
}

// Refusal says why c may not have effects: while the journal has no fault it is the
// transaction that has had too many.
func (c *Call) Refusal() resp.Error {
	fault := c.Server.Options.Persistence.Fault()
	if fault == "" && c.Client.Exclusive {
		return errManyEffects
	}
	return Misconf(fault)
}

// Bound makes an error of the reply since mark if it is too long, whatever is missing
// of it.
func (c *Call) Bound(mark int) {
	if c.W.Size(mark) > Longest(c.W) {
		c.W.Cut(mark)
		c.Fail(TooLong(c.W))
	}
}

// NoteLookup counts keyspace hits and misses.
func (c *Call) NoteLookup(found bool) {
	if found {
		c.Hits.Add(1)
	} else {
		c.Misses.Add(1)
	}
}

// HeadBytes is what an element of a reply takes beside its bytes.
const HeadBytes = 16

// CopiedBytes is how many bytes a reply takes for a value of n.
func CopiedBytes(n int) int { return HeadBytes + shared.Copied(n) }

// Longest is how many bytes a reply may copy. What a script is given may be shorter than
// what a client is sent: no memory has been asked for it.
func Longest(w *resp.Writer) int {
	if w.Most > 0 {
		return w.Most
	}
	return MaxReply
}

// TooLong is the error in place of a reply that is longer than that.
func TooLong(w *resp.Writer) resp.Error {
	if w.Most > 0 {
		return ErrScriptReply
	}
	return ErrValuesTooLong
}

// InlineReply is how many bytes a reply that nobody knows the length of may copy on a
// loop. A longer one is made once more, in the background.
const InlineReply = 256 << 10

// ReplyString replies what was read into the worker's scratch.
func (c *Call) ReplyString(value []byte, found bool, err error) {
	c.NoteLookup(found)
	switch {
	case err != nil:
		c.Fail(StoreError(err))
	case !found:
		c.W.Null()
	default:
		c.ReplySpan(value, 0, len(value))
	}
}

// ReplySpan replies a part of what was read: into the worker's scratch, or lent by the
// store because it is long.
func (c *Call) ReplySpan(value []byte, from, to int) {
	if len(value) < shared.Least {
		c.KeepText(value)
		c.W.Bulk(value[from:to])
		return
	}
	r := shared.Held(value, c.Server.Options.Ledger)
	r.Bytes = value[from:to]
	c.W.Lent(r)
}

// GiveBack ends the use of what was read and is not replied.
func (c *Call) GiveBack(value []byte) {
	if len(value) < shared.Least {
		c.KeepText(value)
		return
	}
	r := shared.Held(value, c.Server.Options.Ledger)
	r.Release()
}

// maxText is how large a worker's scratch for values stays.
const maxText = 64 << 10

// KeepText keeps the memory that c.text has grown to, if it is not much.
func (c *Call) KeepText(text []byte) {
	if cap(text) > cap(c.Text) && cap(text) <= maxText {
		c.Text = text
	}
}

// ReplyWhether replies 1 or 0.
func (c *Call) ReplyWhether(done bool, err error) {
	switch {
	case err != nil:
		c.Fail(StoreError(err))
	case done:
		c.W.Int(1)
	default:
		c.W.Int(0)
	}
}

// ReplyCount replies a number that is n unless there was an error.
func (c *Call) ReplyCount(n int64, err error) {
	if err != nil {
		c.Fail(StoreError(err))
		return
	}
	c.W.Int(n)
}
