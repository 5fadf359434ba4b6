package commands

import (
	"time"

	"github.com/cellserver/cellserver/commands/parse"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/shared"
)

func stringCommands() []*Command {
	entry := func(name string, arity int, f Flag, syntax, summary, reply string, run func(*Ctx)) *Command {
		return &Command{
			Name: name, Arity: arity, Flags: f, Keys: oneKey, Categories: CatString, Group: "string", Summary: summary,
			Syntax: syntax, Since: "1.0.0", Complexity: "O(1)", Reply: reply, Run: run,
		}
	}
	over := func(c *Command, keys KeySpec) *Command {
		c.Keys, c.Complexity = keys, "O(N)"
		return c
	}
	const write = FlagWrite | FlagDenyOOM
	const expiry = "[EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | "
	pairs := KeySpec{First: 1, Last: -1, Step: 2}
	return []*Command{
		entry("set", -3, write, "key value [NX | XX] [GET] "+expiry+"KEEPTTL]",
			"Sets the value of a key, whatever it held.", "OK, or null where NX or XX forbade it; with GET what was there", set),
		entry("setex", 4, write, "key seconds value", "Sets the value and the expiry of a key.", "OK",
			func(c *Ctx) { setUntil(c, time.Second) }),
		entry("psetex", 4, write, "key milliseconds value", "Sets the value and the expiry in milliseconds of a key.", "OK",
			func(c *Ctx) { setUntil(c, time.Millisecond) }),
		entry("setnx", 3, write|FlagFast, "key value", "Sets the value of a key that does not exist.", "1 if it was set, 0 if not", setnx),
		entry("getset", 3, write|FlagFast, "key value", "Sets the value of a key.", "what was there, or null", getset),
		entry("getdel", 2, FlagWrite|FlagFast, "key", "Deletes a key.", "what was there, or null", getdel),
		entry("getex", -2, FlagWrite|FlagFast, "key "+expiry+"PERSIST]", "Returns the value of a key and sets its expiry.",
			"the value, or null", getex),
		over(entry("mget", -2, FlagReadonly|FlagFast, "key [key ...]", "Returns the values of several keys at one instant.",
			"an array of values, null for what is no string", mget), KeySpec{First: 1, Last: -1, Step: 1}),
		over(entry("mset", -3, write, "key value [key value ...]", "Sets the values of several keys at one instant.", "OK",
			func(c *Ctx) { mset(c, false) }), pairs),
		over(entry("msetnx", -3, write, "key value [key value ...]", "Sets the values of several keys if none of them exists.",
			"1 if they were set, 0 if not", func(c *Ctx) { mset(c, true) }), pairs),
		over(entry("append", 3, write|FlagFast, "key value", "Puts a value behind that of a key.", "the length in bytes", appendTo), oneKey),
		over(entry("getrange", 4, FlagReadonly, "key start end", "Returns a part of the value of a key.",
			"the bytes from start to end, of which negative ones count from the end", getrange), oneKey),
		over(entry("substr", 4, FlagReadonly, "key start end", "Is GETRANGE under its name before Redis 2.0.",
			"the bytes from start to end, of which negative ones count from the end", getrange), oneKey),
		over(entry("setrange", 4, write, "key offset value", "Overwrites a part of the value of a key.", "the length in bytes", setrange), oneKey),
	}
}

// set is SET.
func set(c *Ctx) {
	call, err := parseSet(c.Args[3:])
	if err != "" {
		c.Fail(err)
		return
	}
	o := SetOptions{Expiry: limit.MaxInstant, KeepTTL: call.keepTTL, IfAbsent: call.nx, IfExists: call.xx}
	if call.expiry != nil {
		if o.Expiry, err = c.futureInstant(call.expiry, call.unit, call.absolute); err != "" {
			c.Fail(err)
			return
		}
	}
	if call.get {
		c.swap(o)
		return
	}
	done, fault := c.Store.SetString(c.Client.selected(), c.Args[1], c.Args[2], o)
	switch {
	case fault != nil:
		c.Fail(storeError(fault))
	case !done:
		c.W.Null()
	default:
		c.OK()
	}
}

// swap sets the key and replies what it held.
func (c *Ctx) swap(o SetOptions) {
	old, found, _, err := c.Store.SwapString(c.text[:0], c.Client.selected(), c.Args[1], c.Args[2], o)
	c.replyString(old, found, err)
}

// replyString replies what was read into the lane's scratch.
func (c *Ctx) replyString(value []byte, found bool, err error) {
	c.noteLookup(found)
	switch {
	case err != nil:
		c.Fail(storeError(err))
	case !found:
		c.W.Null()
	default:
		c.replySpan(value, 0, len(value))
	}
}

// replySpan replies a part of what was read: into the lane's scratch, or lent by the
// store because it is long.
func (c *Ctx) replySpan(value []byte, from, to int) {
	if len(value) < shared.Least {
		c.keepText(value)
		c.W.Bulk(value[from:to])
		return
	}
	r := shared.Held(value, c.server.opts.Ledger)
	r.Bytes = value[from:to]
	c.W.Lent(r)
}

// giveBack ends the use of what was read and is not replied.
func (c *Ctx) giveBack(value []byte) {
	if len(value) < shared.Least {
		c.keepText(value)
		return
	}
	r := shared.Held(value, c.server.opts.Ledger)
	r.Release()
}

// maxText is how large a lane's scratch for values stays.
const maxText = 64 << 10

// keepText keeps the memory that c.text has grown to, if it is not much.
func (c *Ctx) keepText(text []byte) {
	if cap(text) > cap(c.text) && cap(text) <= maxText {
		c.text = text
	}
}

// futureInstant turns the expiry that a command sets a string with into an instant:
// a positive number, which may all the same lie in the past if it is absolute.
func (c *Ctx) futureInstant(text []byte, unit time.Duration, absolute bool) (limit.Instant, resp.Error) {
	n, ok := parse.Int(text)
	if !ok {
		return 0, resp.ErrNotInteger
	}
	at, ok := expiryInstant(c.Store, n, unit, absolute)
	if !ok || n <= 0 {
		return 0, resp.Error("ERR invalid expire time in '" + c.Cmd.Name + "' command")
	}
	return min(at, limit.MaxInstant-1), ""
}

// setUntil is SETEX and PSETEX.
func setUntil(c *Ctx, unit time.Duration) {
	at, fault := c.futureInstant(c.Args[2], unit, false)
	if fault != "" {
		c.Fail(fault)
		return
	}
	if _, err := c.Store.SetString(c.Client.selected(), c.Args[1], c.Args[3], SetOptions{Expiry: at}); err != nil {
		c.Fail(storeError(err))
		return
	}
	c.OK()
}

func setnx(c *Ctx) {
	done, err := c.Store.SetString(c.Client.selected(), c.Args[1], c.Args[2], SetOptions{Expiry: limit.MaxInstant, IfAbsent: true})
	c.replyWhether(done, err)
}

// replyWhether replies 1 or 0.
func (c *Ctx) replyWhether(done bool, err error) {
	switch {
	case err != nil:
		c.Fail(storeError(err))
	case done:
		c.W.Int(1)
	default:
		c.W.Int(0)
	}
}

// replyCount replies a number that is n unless there was an error.
func (c *Ctx) replyCount(n int64, err error) {
	if err != nil {
		c.Fail(storeError(err))
		return
	}
	c.W.Int(n)
}

func getset(c *Ctx) { c.swap(SetOptions{Expiry: limit.MaxInstant}) }

func getdel(c *Ctx) {
	c.replyString(c.Store.TakeString(c.text[:0], c.Client.selected(), c.Args[1]))
}

// getex is GETEX. An expiry is looked at only once there is a string to give it to.
func getex(c *Ctx) {
	call, err := parseGetex(c.Args[2:])
	if err != "" {
		c.Fail(err)
		return
	}
	at := limit.MaxInstant
	if call.expiry != nil {
		at, err = c.futureInstant(call.expiry, call.unit, call.absolute)
	}
	if err == "" && (call.expiry != nil || call.persist) {
		c.replyString(c.Store.ReadUntil(c.text[:0], c.Client.selected(), c.Args[1], at))
		return
	}
	value, found, fault := c.Store.AppendString(c.text[:0], c.Client.selected(), c.Args[1])
	if err != "" && found && fault == nil {
		c.giveBack(value)
		c.Fail(err)
		return
	}
	c.replyString(value, found, fault)
}

const errValuesTooLong resp.Error = "ERR the reply is too long"

func mget(c *Ctx) {
	l, db, most := laneOf(c.Worker), c.Client.selected(), c.mostHere()
	switch {
	case l.replyValues(c.Store, c.W, db, c.Args[1:], most):
		return
	case most == longest(c.W):
		c.Fail(tooLong(c.W))
		return
	}
	cmd, args := c.Cmd, cloneArgs(c.Args)
	c.offload(func(st Store) int { return copiedBy(st, db, cmd, args) }, func(st Store, w *resp.Writer) {
		if !l.replyValues(st, w, db, args[1:], maxReply) {
			w.Error(errValuesTooLong)
		}
	})
}

// replyValues replies what keys hold, or reports that this takes more than most bytes,
// and then has written nothing. l counts what was found; it may be in use.
func (l *Worker) replyValues(st Store, w *resp.Writer, db int, keys [][]byte, most int) bool {
	reply, hits, fits := wholeOf(w, len(keys)), int64(0), true
	reply.most = most
	w.Array(len(keys))
	st.EachString(db, keys, func(value []byte, found bool) bool {
		if found {
			hits++
			w.Element(value)
		} else {
			w.Null()
		}
		fits = reply.more()
		return fits
	})
	if !fits {
		w.Cut(reply.mark)
		return false
	}
	l.hits.Add(hits)
	l.misses.Add(int64(len(keys)) - hits)
	return true
}

// mset is MSET and MSETNX.
func mset(c *Ctx, nx bool) {
	if len(c.Args)%2 == 0 {
		c.Fail(resp.WrongArity(c.Cmd.Name))
		return
	}
	done, err := c.Store.SetStrings(c.Client.selected(), c.Args[1:], nx)
	if nx || err != nil {
		c.replyWhether(done, err)
		return
	}
	c.OK()
}

// longestString is how long a string may become: as long as one that a client can
// send.
func (c *Ctx) longestString() int { return c.server.Limits().Frame.MaxBulk }

// appendTo is APPEND.
func appendTo(c *Ctx) {
	n, err := c.Store.ExtendString(c.Client.selected(), c.Args[1], c.Args[2], c.longestString())
	c.replyCount(int64(n), err)
}

func getrange(c *Ctx) {
	from, ok := parse.Int(c.Args[2])
	to, alsoOK := parse.Int(c.Args[3])
	if !ok || !alsoOK {
		c.Fail(resp.ErrNotInteger)
		return
	}
	value, _, err := c.readString()
	if err != nil {
		c.Fail(storeError(err))
		return
	}
	start, end := span(len(value), from, to)
	c.replySpan(value, start, end)
}

// span returns which part of length bytes is meant by one byte to another, both
// included; a negative one counts from the end, and what is outside is left out.
func span(length int, from, to int64) (start, end int) {
	n := int64(length)
	if from < 0 && to < 0 && from > to {
		return 0, 0
	}
	if from < 0 {
		from = max(0, n+from)
	}
	if to < 0 {
		to = max(0, n+to)
	}
	to = min(to, n-1)
	if from > to {
		return 0, 0
	}
	return int(from), int(to) + 1
}

func setrange(c *Ctx) {
	offset, ok := parse.Int(c.Args[2])
	switch {
	case !ok:
		c.Fail(resp.ErrNotInteger)
		return
	case offset < 0:
		c.Fail("ERR offset is out of range")
		return
	}
	part, most := c.Args[3], int64(c.longestString())
	length := 0
	err := c.Store.UpdateString(c.Client.selected(), c.Args[1], func(old []byte, _ bool, expiry limit.Instant) ([]byte, limit.Instant, error) {
		length = len(old)
		if len(part) == 0 {
			return nil, expiry, nil
		}
		if offset > most-int64(len(part)) {
			return nil, expiry, limit.ErrTooLong
		}
		length = max(length, int(offset)+len(part))
		if err := c.stay(units(0, length)); err != nil {
			return nil, expiry, err
		}
		if zeros := offset - int64(len(old)); zeros > 0 && c.Store.Lacks(zeros) {
			return nil, expiry, limit.ErrFull
		}
		value := shared.New(old, length-len(old))[:length]
		clear(value[len(old):])
		copy(value[offset:], part)
		return value, expiry, nil
	})
	if c.left(err) {
		return
	}
	c.replyCount(int64(length), err)
}
