package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Eval runs a script of Lua on the node of its keys, and waits for the reply: a string, an int64, nil
// or a []any of such values. keys are without the prefix of [Options], at least one, and all in one
// slot. The script may be sent to several nodes, but it runs once at most. Eval returns at the deadline
// of ctx at the latest, or after controlTimeout, one second, if ctx has none. At most it waits
// callTimeout for a reply. It may not notice that ctx is canceled. An err is an [*Error]. If its NotDone is false, it is unknown whether
// the script has run or will run.
func (e *Engine) Eval(ctx context.Context, script string, keys, args []string) (reply any, err error) {
	if len(keys) == 0 {
		return nil, &Error{Reason: Unknown, Text: "a script needs a key", NotDone: true}
	}
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, controlTimeout)
		defer cancel()
	}
	c := newCall(e.o.Prefix, script, keys, args)
	c.slot = e.Slot([]byte(keys[0]))
	reply, why := e.call(ctx, c)
	if why != nil {
		return nil, why
	}
	return reply, nil
}

// call is a script that one goroutine sends and waits for.
type call struct {
	script *script
	words  []any
	key    word // the first key: see the type word
	slot   int
	eval   bool // whether the text of the script is sent, and not only its digest
	asking bool // whether ASKING is sent before the script
	// confirm, if not nil, waits for replicas after the script.
	confirm *confirmation
}

func newCall(prefix, text string, keys, args []string) *call {
	c := &call{script: newScript(text), words: make([]any, 3, 3+len(keys)+len(args))}
	c.key.b = []byte(prefix + keys[0])
	c.words[2] = len(keys)
	c.words = append(c.words, &c.key)
	for _, key := range keys[1:] {
		c.words = append(c.words, prefix+key)
	}
	for _, a := range args {
		c.words = append(c.words, a)
	}
	return c
}

// call sends c until a node has run it, mostTries times more at most.
func (e *Engine) call(ctx context.Context, c *call) (any, *Error) {
	n, why := e.nodeOf(c.slot)
	for tries := 0; ; tries++ {
		if why != nil {
			return nil, why
		}
		reply, err := e.send(ctx, n, c)
		switch {
		case err == nil:
			return reply, nil
		case errors.Is(err, redis.Nil) && c.key.sent:
			return nil, nil
		}
		if why = e.whyOf(err, c); tries >= mostTries || !why.NotDone {
			return nil, why
		}
		switch why.Reason {
		case "NOSCRIPT":
			c.eval, why = true, nil
		case "MOVED", "ASK":
			n, why = e.redirected(n, c, err.Error(), why)
		case "TRYAGAIN":
			why = pause(ctx, time.Millisecond<<tries, why)
		case Broken: // for example, the node has closed an idle connection
			if tries == 0 {
				n, why = e.nodeOf(c.slot)
			}
		}
	}
}

// nodeOf returns the node that has the slot, or the reason why it cannot be asked.
func (e *Engine) nodeOf(slot int) (*node, *Error) {
	way := e.routes.Load()
	switch {
	case e.closing.Load():
		return nil, closing
	case way == nil || !e.timed():
		return nil, starting
	case way.node(slot) == nil:
		e.trouble()
		return nil, &Error{Reason: "CLUSTERDOWN", Text: "no node has the slot", NotDone: true}
	}
	return way.node(slot), nil
}

// send sends c to the node n and returns its reply. If the client library panics, which it does on
// malformed replies, send returns an error.
func (e *Engine) send(ctx context.Context, n *node, c *call) (reply any, err error) {
	c.key.sent = false
	if why := n.breaker.closedTo(); why != nil {
		return nil, why
	}
	if ctx.Err() != nil {
		return nil, late
	}
	n.used.Store(int64(e.o.Elapsed()))
	defer func() {
		if p := recover(); p != nil {
			reply, err = nil, fmt.Errorf("%w: %v", errReply, p)
		}
	}()
	if c.words[0], c.words[1] = "evalsha", c.script.sha; c.eval {
		c.words[0], c.words[1] = "eval", c.script.text
	}
	cmd := redis.NewCmd(ctx, c.words...)
	var pipe redis.Pipeliner
	switch {
	case c.confirm != nil:
		pipe = c.confirm.pipeline(n)
	case c.asking:
		pipe = n.calls.Pipeline()
	default:
		_ = n.calls.Process(ctx, cmd)
		return cmd.Result()
	}
	if c.asking {
		_ = pipe.Process(ctx, redis.NewStatusCmd(ctx, "asking"))
	}
	_ = pipe.Process(ctx, cmd)
	if c.confirm != nil {
		c.confirm.add(ctx, pipe, n)
	}
	_, _ = pipe.Exec(ctx)
	return cmd.Result()
}

// whyOf returns the [*Error] for err, the error of the call c.
func (e *Engine) whyOf(err error, c *call) (why *Error) {
	if errors.As(err, &why) {
		return why
	}
	if !isReply(err) || !c.key.sent {
		e.trouble()
		return failed(err, c.key.sent)
	}
	switch why = replied(err.Error()); why.Reason {
	case "READONLY", "MASTERDOWN", "CLUSTERDOWN":
		e.trouble()
	}
	return why
}

// redirected returns the node to which text, an error reply of the node n, redirects c. If there is
// none, it returns why.
func (e *Engine) redirected(n *node, c *call, text string, why *Error) (*node, *Error) {
	slot, addr, ok := redirection(text)
	if !ok {
		return nil, why
	}
	n.stats.redirected.Add(1)
	addr = reachable(addr, n.addr)
	if c.asking = why.Reason == "ASK"; !c.asking {
		e.moved(slot, addr)
	}
	if n = e.node(addr, false); n == nil {
		return nil, closing
	}
	return n, nil
}

// pause waits for d and returns nil. If ctx ends before, it returns why.
func pause(ctx context.Context, d time.Duration, why *Error) *Error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return why
	}
}
