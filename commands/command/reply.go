package command

import (
	"strings"

	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/shared"
)

// OK replies with +OK.
func (c *Call) OK() { c.W.Status("OK") }

// Fail replies with an error and counts the call as failed.
func (c *Call) Fail(e resp.Error) {
	c.Failed = true
	if e == ErrNotKept {
		e = c.Refusal()
	}
	c.W.Error(e)
}

// WithUsage adds the syntax of the command to an error about an argument. Any other error, or "",
// is returned unchanged.
func (c *Call) WithUsage(e resp.Error) resp.Error {
	if e == "" || !resp.IsArgument(e) {
		return e
	}
	return c.Usage(e)
}

// Usage adds the syntax of the command to an error.
func (c *Call) Usage(e resp.Error) resp.Error {
	name := strings.ToUpper(strings.ReplaceAll(c.Cmd.Name, "|", " "))
	return resp.WithUsage(e, strings.TrimSpace(name+" "+c.Cmd.Syntax))
}

// Refusal returns the reason why c may not have effects. If the journal has no fault, the
// transaction has had too many effects.
func (c *Call) Refusal() resp.Error {
	fault := c.Server.Options.Persistence.Fault()
	if fault == "" && c.Client.Exclusive {
		return errManyEffects
	}
	return Misconf(fault)
}

// Bound replaces the reply since mark with an error if it is too long, even if elements of the
// reply are still missing.
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

// HeadBytes is the memory in bytes that an element of a reply takes in addition to its own bytes.
const HeadBytes = 16

// CopiedBytes returns how many bytes a reply takes for a value of n bytes.
func CopiedBytes(n int) int { return HeadBytes + shared.Copied(n) }

// Longest returns how many bytes a reply may copy. The bound for a reply to a script may be lower
// than for one to a client, because no memory was granted for it.
func Longest(w *resp.Writer) int {
	if w.Most > 0 {
		return w.Most
	}
	return MaxReply
}

// TooLong returns the error that replaces a reply longer than [Longest].
func TooLong(w *resp.Writer) resp.Error {
	if w.Most > 0 {
		return ErrScriptReply
	}
	return ErrValuesTooLong
}

// InlineReply is how many bytes a reply of unknown length may copy on an event loop. If the reply
// gets longer, the command starts again in the background.
const InlineReply = 256 << 10

// ReplyString replies with a value that was read into the worker's scratch buffer.
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

// ReplySpan replies with value[from:to]. value was read into the worker's scratch buffer or, if it
// is long, is shared with the store.
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

// GiveBack releases a value that was read and is not part of the reply.
func (c *Call) GiveBack(value []byte) {
	if len(value) < shared.Least {
		c.KeepText(value)
		return
	}
	r := shared.Held(value, c.Server.Options.Ledger)
	r.Release()
}

// maxText bounds the bytes of a worker's scratch buffer for values that are kept for later calls.
const maxText = 64 << 10

// KeepText keeps the memory that c.Text has grown to, up to maxText.
func (c *Call) KeepText(text []byte) {
	if cap(text) > cap(c.Text) && cap(text) <= maxText {
		c.Text = text
	}
}

// ReplyWhether replies with 1 or 0, or with the error.
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

// ReplyCount replies with n, or with the error.
func (c *Call) ReplyCount(n int64, err error) {
	if err != nil {
		c.Fail(StoreError(err))
		return
	}
	c.W.Int(n)
}
