package strings

import (
	"slices"
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands/internal/elements"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/shared"
)

// store is the part of the store that the commands of this group use.
type store interface {
	env.Store
	env.Strings
	env.Memory
}

// storeCall is a call of a command of this group.
type storeCall = command.CallOn[store]

// Group returns the command group on strings and counters.
func Group() command.Group {
	return command.Group{Commands: slices.Concat(commands(), counterCommands())}
}

func commands() []*command.Command {
	const write = command.FlagWrite | command.FlagDenyOOM
	const expiry = "[EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | "
	pairs := command.KeySpec{First: 1, Last: -1, Step: 2}
	setKey := command.OneKey
	setKey.Use, setKey.UseOf = command.UseRW|command.UseAccess|command.UseUpdate, useOfSet
	return command.Entries(command.Defaults{
		Keys: command.OneKey, Categories: command.CatString, Group: "string", Since: "1.0.0", Complexity: "O(1)",
	}, []*command.Command{
		{
			Name: "get", Arity: 2, Flags: command.FlagReadonly | command.FlagFast | command.FlagValues,
			Summary: "Returns the value of a key. For a CL.THROTTLE key it is the TAT in nanoseconds.", Syntax: "key",
			Reply: "the value, or null", RunOn: command.On(get), Parse: askText, Answer: answerText,
		},
		{
			Name: "strlen", Arity: 2, Flags: command.FlagReadonly | command.FlagFast, Keys: command.OneKey.Uses(command.UsesNothing),
			Summary: "Returns the length of the value of a key.", Syntax: "key", Reply: "the length in bytes, 0 without the key",
			RunOn: command.On(strlen),
		},
		{
			Name: "set", Arity: -3, Flags: write, Keys: setKey,
			Summary: "Sets the value of a key, whatever its type was.", Syntax: "key value [NX | XX] [GET] " + expiry + "KEEPTTL]",
			Reply: "OK, or null if NX or XX prevented it; with GET the old value", RunOn: command.On(set),
		},
		{
			Name: "setex", Arity: 4, Flags: write, Keys: command.OneKey.Uses(command.UsesSets),
			Summary: "Sets the value and the expiry of a key.", Syntax: "key seconds value", Reply: "OK",
			RunOn: command.On(func(c storeCall) { setUntil(c, time.Second) }),
		},
		{
			Name: "psetex", Arity: 4, Flags: write, Keys: command.OneKey.Uses(command.UsesSets),
			Summary: "Sets the value and the expiry in milliseconds of a key.", Syntax: "key milliseconds value", Reply: "OK",
			RunOn: command.On(func(c storeCall) { setUntil(c, time.Millisecond) }),
		},
		{
			Name: "setnx", Arity: 3, Flags: write | command.FlagFast, Keys: command.OneKey.Uses(command.UseOW | command.UseInsert),
			Summary: "Sets the value of a key that does not exist.", Syntax: "key value", Reply: "1 if it was set, 0 if not", RunOn: command.On(setnx),
		},
		{
			Name: "getset", Arity: 3, Flags: write | command.FlagFast,
			Summary: "Sets the value of a key.", Syntax: "key value", Reply: "the old value, or null", RunOn: command.On(getset),
		},
		{
			Name: "getdel", Arity: 2, Flags: command.FlagWrite | command.FlagFast, Keys: command.OneKey.Uses(command.UsesTakes),
			Summary: "Deletes a key.", Syntax: "key", Reply: "the old value, or null", RunOn: command.On(getdel),
		},
		{
			Name: "getex", Arity: -2, Flags: command.FlagWrite | command.FlagFast,
			Summary: "Returns the value of a key and sets its expiry.", Syntax: "key " + expiry + "PERSIST]", Reply: "the value, or null",
			RunOn: command.On(getex),
		},
		{
			Name: "mget", Arity: -2, Flags: command.FlagReadonly | command.FlagFast | command.FlagValues,
			Keys:    command.KeySpec{First: 1, Last: -1, Step: 1},
			Summary: "Returns the values of several keys at one instant.", Syntax: "key [key ...]", Complexity: "O(N)",
			Reply: "an array of values, null for keys that are not strings", RunOn: command.On(mget),
		},
		{
			Name: "mset", Arity: -3, Flags: write, Keys: pairs.Uses(command.UsesSets),
			Summary: "Sets the values of several keys at one instant.", Syntax: "key value [key value ...]", Complexity: "O(N)",
			Reply: "OK", RunOn: command.On(func(c storeCall) { mset(c, false) }),
		},
		{
			Name: "msetnx", Arity: -3, Flags: write, Keys: pairs.Uses(command.UseOW | command.UseInsert),
			Summary: "Sets the values of several keys if none of them exists.", Syntax: "key value [key value ...]", Complexity: "O(N)",
			Reply: "1 if they were set, 0 if not", RunOn: command.On(func(c storeCall) { mset(c, true) }),
		},
		{
			Name: "append", Arity: 3, Flags: write | command.FlagFast, Keys: command.OneKey.Uses(command.UsesInserts),
			Summary: "Appends to the value of a key.", Syntax: "key value", Complexity: "O(N)", Reply: "the length in bytes",
			RunOn: command.On(appendTo),
		},
		{
			Name: "getrange", Arity: 4, Flags: command.FlagReadonly | command.FlagValues,
			Summary: "Returns a part of the value of a key.", Syntax: "key start end", Complexity: "O(N)",
			Reply: "the bytes from start to end; negative positions count from the end", RunOn: command.On(getrange),
		},
		{
			Name: "substr", Arity: 4, Flags: command.FlagReadonly | command.FlagValues,
			Summary: "Does the same as GETRANGE, whose name it was before Redis 2.0.", Syntax: "key start end", Complexity: "O(N)",
			Reply: "the bytes from start to end; negative positions count from the end", RunOn: command.On(getrange),
		},
		{
			Name: "setrange", Arity: 4, Flags: write, Keys: command.OneKey.Uses(command.UsesUpdates),
			Summary: "Overwrites a part of the value of a key.", Syntax: "key offset value", Complexity: "O(N)",
			Reply: "the length in bytes", RunOn: command.On(setrange),
		},
	})
}

// useOfSet returns how a SET with args uses its key. With GET it reads the old value, too.
func useOfSet(args [][]byte) command.KeyUse {
	for _, word := range args[min(3, len(args)):] {
		if arg.IsWord(word, "GET") {
			return command.UseRW | command.UseAccess | command.UseUpdate
		}
	}
	return command.UsesSets
}

// set is the Run function of SET. With GET it replies with the old value, and otherwise with OK, or
// null if NX or XX prevented the change.
func set(c storeCall) {
	call, err := parseSet(c.Args[3:])
	if err != "" {
		c.Fail(err)
		return
	}
	o := env.SetOptions{Expiry: limit.MaxInstant, KeepTTL: call.keepTTL, IfAbsent: call.nx, IfExists: call.xx}
	if call.expiry != nil {
		if o.Expiry, err = futureInstant(c.Call, call.expiry, call.unit, call.absolute); err != "" {
			c.Fail(err)
			return
		}
	}
	if call.get {
		swap(c, o)
		return
	}
	done, fault := c.Store.SetString(c.Client.Selected(), c.Args[1], c.Args[2], o)
	switch {
	case fault != nil:
		c.Fail(command.StoreError(fault))
	case !done:
		c.W.Null()
	default:
		c.OK()
	}
}

// swap sets the key to the value in the second argument with the options o, and replies with the
// old value, or with null if there was none. The reply is the same if NX or XX prevented the
// change.
func swap(c storeCall, o env.SetOptions) {
	old, found, _, err := c.Store.SwapString(c.Text[:0], c.Client.Selected(), c.Args[1], c.Args[2], o)
	c.ReplyString(old, found, err)
}

// setUntil is the Run function of SETEX (unit is a second) and PSETEX (unit is a millisecond).
func setUntil(c storeCall, unit time.Duration) {
	at, fault := futureInstant(c.Call, c.Args[2], unit, false)
	if fault != "" {
		c.Fail(fault)
		return
	}
	if _, err := c.Store.SetString(c.Client.Selected(), c.Args[1], c.Args[3], env.SetOptions{Expiry: at}); err != nil {
		c.Fail(command.StoreError(err))
		return
	}
	c.OK()
}

func setnx(c storeCall) {
	done, err := c.Store.SetString(c.Client.Selected(), c.Args[1], c.Args[2], env.SetOptions{Expiry: limit.MaxInstant, IfAbsent: true})
	c.ReplyWhether(done, err)
}

func getset(c storeCall) { swap(c, env.SetOptions{Expiry: limit.MaxInstant}) }

func getdel(c storeCall) {
	c.ReplyString(c.Store.TakeString(c.Text[:0], c.Client.Selected(), c.Args[1]))
}

// getex is the Run function of GETEX. It reports an expiry that is out of range only if the key has
// a string.
func getex(c storeCall) {
	call, err := parseGetex(c.Args[2:])
	if err != "" {
		c.Fail(err)
		return
	}
	at := limit.MaxInstant
	if call.expiry != nil {
		at, err = futureInstant(c.Call, call.expiry, call.unit, call.absolute)
	}
	if err == "" && (call.expiry != nil || call.persist) {
		c.ReplyString(c.Store.ReadUntil(c.Text[:0], c.Client.Selected(), c.Args[1], at))
		return
	}
	value, found, fault := c.Store.AppendString(c.Text[:0], c.Client.Selected(), c.Args[1])
	if err != "" && found && fault == nil {
		c.GiveBack(value)
		c.Fail(err)
		return
	}
	c.ReplyString(value, found, fault)
}

func mget(c storeCall) {
	l, db, most := c.Worker, c.Client.Selected(), elements.MostHere(c.Call)
	switch {
	case replyValues(l, c.Store, c.W, db, c.Args[1:], most):
		return
	case most == command.Longest(c.W):
		c.Fail(command.TooLong(c.W))
		return
	}
	cmd, args := c.Cmd, command.CloneArgs(c.Args)
	c.OffloadSized(func(st store) int { return command.CopiedBy(st, db, cmd, args) }, func(st store, w *resp.Writer) {
		if !replyValues(l, st, w, db, args[1:], command.MaxReply) {
			w.Error(command.ErrValuesTooLong)
		}
	})
}

// replyValues replies with the values of keys. If that would copy more than most bytes, it writes
// nothing and returns false. It counts hits and misses in l, which other goroutines may use at the
// same time.
func replyValues(l *command.Worker, st store, w *resp.Writer, db int, keys [][]byte, most int) bool {
	reply, hits, fits := elements.WholeOf(w, len(keys)), int64(0), true
	reply.Most = most
	w.Array(len(keys))
	st.EachString(db, keys, func(value []byte, found bool) bool {
		if found {
			hits++
			w.Element(value)
		} else {
			w.Null()
		}
		fits = reply.More()
		return fits
	})
	if !fits {
		w.Cut(reply.Mark)
		return false
	}
	l.Hits.Add(hits)
	l.Misses.Add(int64(len(keys)) - hits)
	return true
}

// mset is the Run function of MSET and, if nx is set, of MSETNX, which replies with 1, or with 0
// and without a change if one of the keys exists.
func mset(c storeCall, nx bool) {
	if len(c.Args)%2 == 0 {
		c.Fail(resp.WrongArity(c.Cmd.Name))
		return
	}
	done, err := c.Store.SetStrings(c.Client.Selected(), c.Args[1:], nx)
	if nx || err != nil {
		c.ReplyWhether(done, err)
		return
	}
	c.OK()
}

// longestString returns the maximum length of a string in bytes, which is the length of the longest
// argument that a client can send.
func longestString(c *command.Call) int { return c.Server.Limits().Frame.MaxBulk }

// appendTo is the Run function of APPEND. It replies with the new length of the value in bytes.
func appendTo(c storeCall) {
	n, err := c.Store.ExtendString(c.Client.Selected(), c.Args[1], c.Args[2], longestString(c.Call))
	c.ReplyCount(int64(n), err)
}

func getrange(c storeCall) {
	from, ok := arg.Int(c.Args[2])
	to, alsoOK := arg.Int(c.Args[3])
	if !ok || !alsoOK {
		c.Fail(resp.ErrNotInteger)
		return
	}
	value, _, err := readString(c)
	if err != nil {
		c.Fail(command.StoreError(err))
		return
	}
	start, end := span(len(value), from, to)
	c.ReplySpan(value, start, end)
}

// span returns the part of a value that GETRANGE returns for the positions [from, to], both
// inclusive; end is exclusive. Negative positions count from the end. The range is cut to the
// value, and is empty if the positions cross.
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

func setrange(c storeCall) {
	offset, ok := arg.Int(c.Args[2])
	switch {
	case !ok:
		c.Fail(resp.ErrNotInteger)
		return
	case offset < 0:
		c.Fail("ERR offset is out of range")
		return
	}
	part, most := c.Args[3], int64(longestString(c.Call))
	length := 0
	err := c.Store.UpdateString(c.Client.Selected(), c.Args[1], func(old []byte, _ bool, expiry limit.Instant) ([]byte, limit.Instant, error) {
		length = len(old)
		if len(part) == 0 {
			return nil, expiry, nil
		}
		if offset > most-int64(len(part)) {
			return nil, expiry, limit.ErrTooLong
		}
		length = max(length, int(offset)+len(part))
		if err := c.StayOnLoop(command.Units(0, length)); err != nil {
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
	if c.LeftLoop(err) {
		return
	}
	c.ReplyCount(int64(length), err)
}

// get is the Run function of GET. For a key of CL.THROTTLE it replies with the theoretical arrival
// time (TAT).
func get(c storeCall) {
	c.ReplyString(c.Store.AppendString(c.Text[:0], c.Client.Selected(), c.Args[1]))
}

// askText is the Parse function of GET. It is used if a Remote has the keys.
func askText(c *command.Call) resp.Error {
	c.NewAsk(decide.Admin, c.Args[1]).Admin = decide.AdminCall{Op: decide.Text}
	return ""
}

// answerText is the Answer function of GET. It is used if a Remote has the keys.
func answerText(c *command.Call, a *decide.Ask) {
	c.NoteLookup(a.Result.Found)
	if a.Result.Found {
		c.W.BulkString(a.Result.Text)
	} else {
		c.W.Null()
	}
}

func strlen(c storeCall) {
	value, found, err := readString(c)
	switch {
	case err != nil:
		c.Fail(command.StoreError(err))
	case !found:
		c.W.Int(0)
	default:
		c.W.Int(int64(len(value)))
		c.GiveBack(value)
	}
}

// readString reads the string at the first argument and counts the lookup. The value is in the
// worker's buffer or, if it is long, pinned in the store; [command.Call.ReplySpan] or
// [command.Call.GiveBack] has to release it.
func readString(c storeCall) (value []byte, found bool, err error) {
	value, found, err = c.Store.AppendString(c.Text[:0], c.Client.Selected(), c.Args[1])
	c.NoteLookup(found)
	return value, found, err
}
