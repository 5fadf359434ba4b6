package engine

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// cursorBits is the number of bits for the node's own cursor. The bits above it have the
	// index of the node.
	cursorBits = 48
	// keysAtOnce is the approximate number of keys in each step of Count and Flush. A step of Scan
	// may have ten times as many.
	keysAtOnce = 1000
	// tasksLast is the approximate time limit of Count and Flush.
	tasksLast = time.Minute
)

// pattern returns the pattern of SCAN for keys that begin with prefix. It escapes the special
// characters in prefix.
func pattern(prefix string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(prefix) + "*"
}

// hides reports whether key, which has the prefix, is left out of operations about all keys.
func (e *Engine) hides(key string) bool {
	return e.o.Hidden != "" && strings.HasPrefix(key, e.o.Prefix+e.o.Hidden)
}

// Scan examines about count keys, or about 10,000 if count is larger, beginning at cursor, which is
// 0 at first. done is called once, on another goroutine. next is the cursor of the next step, 0 at
// the end. found has those keys that begin with the prefix and whose values are strings, without
// hidden keys. A key may be found more than once, as with SCAN. An err is an [*Error].
func (e *Engine) Scan(cursor uint64, count int, done func(next uint64, found []Found, err error)) {
	e.task(func() {
		next, found, err := e.scan(cursor, min(max(count, 1), 10*keysAtOnce))
		if err != nil {
			done(0, nil, err)
			return
		}
		done(next, found, nil)
	}, func(why *Error) { done(0, nil, why) })
}

// Count counts the keys with the prefix, without hidden keys, which takes one pass over all keys of
// the engine. As with SCAN, a key may be counted more than once. done is called once, on another goroutine. An err is
// an [*Error].
func (e *Engine) Count(done func(n int64, err error)) {
	e.task(func() {
		var n int64
		err := e.each(func(_ *node, keys []string) error {
			n += int64(len(keys))
			return nil
		})
		if err != nil {
			done(0, err)
			return
		}
		done(n, nil)
	}, func(why *Error) { done(0, why) })
}

// Flush deletes the keys with the prefix, but no hidden keys. Keys that are written meanwhile, or whose slots move, may
// remain. done is called once, on another goroutine. An err is an [*Error].
func (e *Engine) Flush(done func(err error)) {
	e.task(func() {
		err := e.each(func(n *node, keys []string) error {
			ctx := context.Background()
			pipe := n.control.Pipeline()
			for _, key := range keys { // one request for each key, since the keys of a cluster are in many slots
				pipe.Del(ctx, key)
			}
			cmds, err := pipe.Exec(ctx)
			for _, c := range cmds {
				if e := c.Err(); e != nil && !isReply(e) || isReply(e) && !replied(e.Error()).moves() {
					return e
				}
			}
			if err != nil && !isReply(err) {
				return err
			}
			return nil
		})
		if err != nil {
			done(err)
			return
		}
		done(nil)
	}, func(why *Error) { done(why) })
}

// task calls f, which may block, on another goroutine. If too many tasks wait, or the engine is
// being closed, it calls refuse with the reason instead, also on another goroutine.
func (e *Engine) task(f func(), refuse func(*Error)) {
	switch {
	case e.closing.Load():
		go refuse(closing)
	case !e.tasks.add(f):
		go refuse(overloaded)
	}
}

// scan does one step of Scan. It returns the cursor of the next step, the keys that it has found,
// and the error. It blocks. A cursor of a node that no longer exists ends the scan.
func (e *Engine) scan(cursor uint64, count int) (uint64, []Found, *Error) {
	way := e.routes.Load()
	if way == nil || !e.timed() {
		return 0, nil, starting
	}
	at := int(cursor >> cursorBits)
	if at >= len(way.masters) {
		return 0, nil, nil // the cursor is from a time when there were more nodes
	}
	n := way.masters[at]
	if why := n.breaker.closedTo(); why != nil {
		return 0, nil, why
	}
	ctx := context.Background()
	keys, inner, err := n.control.Scan(ctx, cursor&(1<<cursorBits-1), pattern(e.o.Prefix), int64(count)).Result()
	if err != nil {
		return 0, nil, errorOf(err)
	}
	found, err := e.values(ctx, n, slices.DeleteFunc(keys, e.hides))
	if err != nil {
		return 0, nil, errorOf(err)
	}
	switch {
	case inner >= 1<<cursorBits:
		return 0, nil, &Error{Reason: Malformed, Text: "a cursor of the store is too large", NotDone: true}
	case inner != 0:
		return uint64(at)<<cursorBits | inner, found, nil
	case at+1 < len(way.masters):
		return uint64(at+1) << cursorBits, found, nil
	}
	return 0, found, nil
}

// values reads the values of keys from the node n. It leaves out keys that were deleted meanwhile
// or whose values are not strings, and keys without the prefix.
func (e *Engine) values(ctx context.Context, n *node, keys []string) ([]Found, error) {
	pipe := n.control.Pipeline()
	gets := make([]*redis.StringCmd, len(keys))
	for i, key := range keys {
		gets[i] = pipe.Get(ctx, key)
	}
	if _, err := pipe.Exec(ctx); err != nil && !isReply(err) {
		return nil, err
	}
	found := make([]Found, 0, len(keys))
	for i, get := range gets {
		if value, err := get.Bytes(); err == nil && strings.HasPrefix(keys[i], e.o.Prefix) {
			found = append(found, Found{Key: []byte(keys[i][len(e.o.Prefix):]), Value: value})
		}
	}
	return found, nil
}

// each calls f with all keys that have the prefix and are not hidden, in batches, with their node. It
// blocks, for about tasksLast at most.
func (e *Engine) each(f func(n *node, keys []string) error) error {
	way := e.routes.Load()
	if way == nil || !e.timed() {
		return starting
	}
	ctx, cancel := context.WithTimeout(context.Background(), tasksLast)
	defer cancel()
	for _, n := range way.masters {
		for cursor := uint64(0); ; {
			keys, next, err := n.control.Scan(ctx, cursor, pattern(e.o.Prefix), keysAtOnce).Result()
			if keys = slices.DeleteFunc(keys, e.hides); err == nil && len(keys) > 0 {
				err = f(n, keys)
			}
			switch {
			case err != nil:
				return errorOf(err)
			case e.closing.Load():
				return closing
			case ctx.Err() != nil:
				return &Error{Reason: Timeout, Text: "there are too many keys"}
			}
			if cursor = next; cursor == 0 {
				break
			}
		}
	}
	return nil
}

// errorOf returns the error of the engine for err, the error of a command or a pipeline that was
// sent.
func errorOf(err error) *Error {
	if isReply(err) {
		return replied(lastReply(err))
	}
	return failed(err, true)
}
