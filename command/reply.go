package command

import (
	"strings"

	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/shared"
)

// OK replies with the status +OK.
func (c *Call) OK() { c.W.Status("OK") }

// Fail replies with the error e and sets c.Failed. It replaces [ErrNotKept] by the exact reason.
func (c *Call) Fail(e resp.Error) {
	c.Failed = true
	if e == ErrNotKept {
		e = c.Refusal()
	}
	c.W.Error(e)
}

// WithUsage returns e with the syntax of the command added, if e is an error about an argument. Any
// other error, or "", is returned unchanged.
func (c *Call) WithUsage(e resp.Error) resp.Error {
	if e == "" || !resp.IsArgument(e) {
		return e
	}
	return c.Usage(e)
}

// Usage returns the error e with the syntax of the command added.
func (c *Call) Usage(e resp.Error) resp.Error {
	name := strings.ToUpper(strings.ReplaceAll(c.Cmd.Name, "|", " "))
	return resp.WithUsage(e, strings.TrimSpace(name+" "+c.Cmd.Syntax))
}

// Refusal returns the error that says why c may not have effects now: the fault of the journal or,
// inside a transaction, the too large record of its effects.
func (c *Call) Refusal() resp.Error {
	fault := c.Server.Options.Persistence.Fault()
	if fault == "" && c.Client.Exclusive {
		return errManyEffects
	}
	return Misconf(fault)
}

// Bound replaces the reply that begins at the offset mark of c.W.Buf by an error if it copies more
// bytes than [Longest] allows. It must be called after the last element is written, since nothing may
// follow the error.
func (c *Call) Bound(mark int) {
	if c.W.Size(mark) > Longest(c.W) {
		c.W.Cut(mark)
		c.Fail(TooLong(c.W))
	}
}

// NoteLookup counts a lookup of a key as a keyspace hit if found is true, and as a miss otherwise.
func (c *Call) NoteLookup(found bool) {
	if found {
		c.Hits.Add(1)
	} else {
		c.Misses.Add(1)
	}
}

// HeadBytes is the memory in bytes that an element of a reply takes in addition to its own bytes.
const HeadBytes = 16

// CopiedBytes returns how many bytes a reply takes for a value of n bytes. A long value is not
// copied: the reply refers to it.
func CopiedBytes(n int) int { return HeadBytes + shared.Copied(n) }

// Longest returns how many bytes a reply to w may copy. The bound of a reply to a script may be
// lower than the maximum of a reply to a client, because no memory was granted for it.
func Longest(w *resp.Writer) int {
	if w.Most > 0 {
		return w.Most
	}
	return MaxReply
}

// TooLong returns the error that replaces a reply to w that is longer than [Longest].
func TooLong(w *resp.Writer) resp.Error {
	if w.Most > 0 {
		return ErrScriptReply
	}
	return ErrValuesTooLong
}

// InlineReply is the number of bytes that a reply of unknown length may copy on an event loop. If
// the reply gets longer, the command starts again in the background.
const InlineReply = 256 << 10

// ReplyString replies with value, which was read into c.Text or is pinned in the store; with null
// if found is false; or with the error err. It also counts the lookup.
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

// ReplySpan replies with value[from:to]. value was read into c.Text or, if it has shared.Least
// bytes or more, is pinned in the store. The reply then refers to the pinned value, and releases it
// when it has been sent.
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

// GiveBack releases value, which was read as for [Call.ReplySpan]. It is for a command whose reply
// does not contain the value.
func (c *Call) GiveBack(value []byte) {
	if len(value) < shared.Least {
		c.KeepText(value)
		return
	}
	r := shared.Held(value, c.Server.Options.Ledger)
	r.Release()
}

// maxText is the maximum size, in bytes, of the buffer c.Text that a worker keeps for later calls.
const maxText = 64 << 10

// KeepText makes text the worker's buffer c.Text if text is larger, up to maxText bytes.
func (c *Call) KeepText(text []byte) {
	if cap(text) > cap(c.Text) && cap(text) <= maxText {
		c.Text = text
	}
}

// ReplyWhether replies with 1 if done is true and with 0 otherwise, or with the error err if it is
// not nil.
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

// ReplyCount replies with n, or with the error err if it is not nil.
func (c *Call) ReplyCount(n int64, err error) {
	if err != nil {
		c.Fail(StoreError(err))
		return
	}
	c.W.Int(n)
}
