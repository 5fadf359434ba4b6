package hashes

import (
	"errors"
	"strconv"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/collection"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands/internal/elements"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/longdouble"
	"github.com/cellserver/cellserver/resp"
)

// store is the part of the store that the commands of this group use.
type store interface {
	env.Store
	env.Hashes
}

// storeCall is a call of a command of this group.
type storeCall = command.CallOn[store]

// Group returns the command group on hashes.
func Group() command.Group {
	return command.Group{Commands: commands(), Worker: func(*command.Worker, command.Slot) any { return new(hashCall) }}
}

func commands() []*command.Command {
	const (
		set   = command.FlagWrite | command.FlagDenyOOM | command.FlagFast
		fast  = command.FlagReadonly | command.FlagFast
		pairs = "key field value [field value ...]"
	)
	return command.Entries(command.Defaults{
		Keys: command.OneKey, Categories: command.CatHash, Group: "hash", Since: "1.0.0", Complexity: "O(N)",
	}, []*command.Command{
		{
			Name: "hset", Arity: -4, Flags: set, Keys: command.OneKey.Uses(command.UsesUpdates),
			Summary: "Sets fields of a hash.", Syntax: pairs, Reply: "how many fields are new",
			RunOn: command.On(func(c storeCall) { hset(c, true) }),
		},
		{
			Name: "hmset", Arity: -4, Flags: set, Keys: command.OneKey.Uses(command.UsesUpdates),
			Summary: "Sets fields of a hash.", Syntax: pairs, Reply: "OK", RunOn: command.On(func(c storeCall) { hset(c, false) }),
		},
		{
			Name: "hsetnx", Arity: 4, Flags: set, Keys: command.OneKey.Uses(command.UsesInserts),
			Summary: "Sets a field of a hash that does not exist.", Syntax: "key field value", Complexity: "O(1)",
			Reply: "1 if it was set, 0 if not", RunOn: command.On(hsetnx),
		},
		{
			Name: "hget", Arity: 3, Flags: fast | command.FlagValues,
			Summary: "Returns the value of a field.", Syntax: "key field", Complexity: "O(1)", Reply: "the value, or null", RunOn: command.On(hget),
			Copies: copiedFields,
		},
		{
			Name: "hmget", Arity: -3, Flags: fast | command.FlagValues,
			Summary: "Returns the values of fields.", Syntax: "key field [field ...]", Reply: "an array of values or nulls", RunOn: command.On(hmget),
			Copies: copiedFields,
		},
		{
			Name: "hgetall", Arity: 2, Flags: command.FlagReadonly | command.FlagLinear,
			Summary: "Returns all fields and values.", Syntax: "key", Reply: "a map",
			RunOn: command.On(func(c storeCall) { hashAll(c, true, true) }),
		},
		{
			Name: "hkeys", Arity: 2, Flags: command.FlagReadonly | command.FlagLinear,
			Summary: "Returns all fields.", Syntax: "key", Reply: "an array", RunOn: command.On(func(c storeCall) { hashAll(c, true, false) }),
		},
		{
			Name: "hvals", Arity: 2, Flags: command.FlagReadonly | command.FlagLinear,
			Summary: "Returns all values.", Syntax: "key", Reply: "an array", RunOn: command.On(func(c storeCall) { hashAll(c, false, true) }),
		},
		{
			Name: "hdel", Arity: -3, Flags: command.FlagWrite | command.FlagFast, Keys: command.OneKey.Uses(command.UsesDeletes),
			Summary: "Deletes fields, and the hash with its last field.", Syntax: "key field [field ...]", Reply: "how many there were",
			RunOn: command.On(hdel),
		},
		{
			Name: "hexists", Arity: 3, Flags: fast, Keys: command.OneKey.Uses(command.UsesNothing),
			Summary: "Returns whether a field exists.", Syntax: "key field", Complexity: "O(1)", Reply: "1 or 0", RunOn: command.On(hexists),
		},
		{
			Name: "hlen", Arity: 2, Flags: fast, Keys: command.OneKey.Uses(command.UsesNothing),
			Summary: "Counts the fields.", Syntax: "key", Complexity: "O(1)", Reply: "their number", RunOn: command.On(hlen),
		},
		{
			Name: "hstrlen", Arity: 3, Flags: fast, Keys: command.OneKey.Uses(command.UsesNothing),
			Summary: "Returns the length of a value.", Syntax: "key field", Complexity: "O(1)",
			Reply: "the length in bytes, 0 without the field", RunOn: command.On(hstrlen),
		},
		{
			Name: "hincrby", Arity: 4, Flags: set,
			Summary: "Adds to the number in a field.", Syntax: "key field increment", Complexity: "O(1)",
			Reply: "the number that it holds now", RunOn: command.On(hincrby),
		},
		{
			Name: "hincrbyfloat", Arity: 4, Flags: set,
			Summary: "Adds a floating-point number to the number in a field.", Syntax: "key field increment", Complexity: "O(1)",
			Reply: "the number that it holds now, as a string", RunOn: command.On(hincrbyfloat),
		},
		{
			Name: "hscan", Arity: -3, Flags: command.FlagReadonly | command.FlagLinear,
			Summary: "Returns fields and values, all in one step.", Syntax: "key cursor [MATCH pattern] [COUNT count]",
			Reply: "the cursor 0, and an array of fields and values", RunOn: command.On(hscan),
		},
	})
}

// copiedFields is the Copies function of HGET and HMGET. It returns the approximate number of bytes
// that a reply with the values of the fields in args copies.
func copiedFields(st env.Local, db int, args [][]byte) (n int) {
	// On an error or without a hash there is nothing to estimate, and the command replies when it
	// runs.
	_, _ = st.ReadHash(db, args[1], func(h *collection.Hash) {
		for _, field := range args[2:] {
			value, _ := h.Get(field)
			n += command.CopiedBytes(len(value))
		}
	})
	return n
}

// hashCall has the functions by which HSET and HGET access a hash, with their arguments and
// results. The functions are bound once for each worker, because a new closure for each call would
// be an allocation.
type hashCall struct {
	args    [][]byte // the fields and values of HSET, or the field of HGET
	added   int64
	w       *resp.Writer
	setFunc func(*collection.Hash) error
	getFunc func(*collection.Hash)
}

func (call *hashCall) prepare(args [][]byte, w *resp.Writer) {
	if call.setFunc == nil {
		call.setFunc, call.getFunc = call.set, call.get
	}
	call.args, call.w, call.added = args, w, 0
}

// set sets all fields in call.args, and counts the new ones in call.added. If the hash would have
// too many fields, set changes nothing and returns [collection.ErrFull].
func (call *hashCall) set(h *collection.Hash) error {
	if h.Max > 0 && h.Len()+len(call.args)/2 > h.Max && h.Len()+newFields(h, call.args) > h.Max {
		return collection.ErrFull
	}
	for i := 0; i < len(call.args); i += 2 {
		added, err := h.Set(call.args[i], call.args[i+1])
		if err != nil {
			return err
		}
		if added {
			call.added++
		}
	}
	return nil
}

// newFields returns the number of different fields in pairs that h does not have.
func newFields(h *collection.Hash, pairs [][]byte) int {
	fresh := map[string]bool{}
	for i := 0; i < len(pairs); i += 2 {
		if _, ok := h.Get(pairs[i]); !ok {
			fresh[string(pairs[i])] = true
		}
	}
	return len(fresh)
}

func (call *hashCall) get(h *collection.Hash) { writeField(call.w, h, call.args[0]) }

// writeField writes the value of field, or null if h does not have it.
func writeField(w *resp.Writer, h *collection.Hash, field []byte) {
	if value, ok := h.Get(field); ok {
		w.Element(value)
		return
	}
	w.Null()
}

// hset is the Run function of HSET, which replies with the number of new fields if counts is set,
// and of HMSET, which replies with OK.
func hset(c storeCall, counts bool) {
	if len(c.Args)%2 != 0 {
		c.Fail(resp.WrongArity(c.Cmd.Name))
		return
	}
	call := command.Scratch[hashCall](c.Call)
	call.prepare(c.Args[2:], c.W)
	err := c.Store.WriteHash(c.Client.Selected(), c.Args[1], call.setFunc)
	switch {
	case err != nil:
		c.Fail(elements.ElementsError(c.Call, err))
	case counts:
		c.W.Int(call.added)
	default:
		c.OK()
	}
}

func hsetnx(c storeCall) {
	added := false
	err := c.Store.WriteHash(c.Client.Selected(), c.Args[1], func(h *collection.Hash) (err error) {
		if _, ok := h.Get(c.Args[2]); !ok {
			added, err = h.Set(c.Args[2], c.Args[3])
		}
		return err
	})
	if err != nil {
		c.Fail(elements.ElementsError(c.Call, err))
		return
	}
	c.ReplyWhether(added, nil)
}

// readHash calls f with the hash at the first argument and counts the lookup. If the key does not
// exist, absent is true and there is no reply. If the key has another type, readHash replies with
// an error, and absent is false.
func readHash(c storeCall, f func(h *collection.Hash)) (absent bool) {
	found, err := c.Store.ReadHash(c.Client.Selected(), c.Args[1], f)
	c.NoteLookup(found)
	if err != nil {
		c.Fail(command.StoreError(err))
		return false
	}
	return !found
}

func hget(c storeCall) {
	call := command.Scratch[hashCall](c.Call)
	call.prepare(c.Args[2:], c.W)
	if readHash(c, call.getFunc) {
		c.W.Null()
	}
}

func hmget(c storeCall) {
	most, fits := elements.MostHere(c.Call), true
	absent := readHash(c, func(h *collection.Hash) { fits = writeFields(c.W, h, c.Args[2:], most) })
	switch {
	case absent:
		writeNoFields(c.W, len(c.Args)-2)
	case fits:
	case most == command.Longest(c.W):
		c.Fail(command.TooLong(c.W))
	default:
		fields := command.CloneArgs(c.Args[2:])
		elements.BesideRead(c, command.CopiedBy(c.Store, c.Client.Selected(), c.Cmd, c.Args), func(st store, db int, key []byte, w *resp.Writer) (bool, error) {
			return st.ReadHash(db, key, func(h *collection.Hash) {
				if !writeFields(w, h, fields, command.MaxReply) {
					w.Error(command.ErrValuesTooLong)
				}
			})
		}, func(w *resp.Writer) { writeNoFields(w, len(fields)) })
	}
}

// writeFields replies with the values of fields. If that would copy more than most bytes, it writes
// nothing and returns false.
func writeFields(w *resp.Writer, h *collection.Hash, fields [][]byte, most int) bool {
	reply := elements.WholeFrom(w, len(fields), 1, h)
	reply.Most = most
	w.Array(len(fields))
	for _, field := range fields {
		if writeField(w, h, field); !reply.More() {
			w.Cut(reply.Mark)
			return false
		}
	}
	return true
}

// writeNoFields replies with n nulls, for the fields of a hash that does not exist.
func writeNoFields(w *resp.Writer, n int) {
	w.Array(n)
	for range n {
		w.Null()
	}
}

// hashAll is the Run function of HGETALL, HKEYS and HVALS. fields and values say what the reply
// contains. A large reply is written in the background.
func hashAll(c storeCall, fields, values bool) {
	mark, size, large := len(c.W.Buf), 0, false
	absent := readHash(c, func(h *collection.Hash) {
		if size, large = elements.ReadsBeside(c.Call, elements.Whole{N: h.Len(), Of: h.Len(), Copied: h.Copied()}); !large {
			elements.WriteHash(c.W, h, fields, values)
		}
	})
	none := func(w *resp.Writer) { elements.WriteHashHead(w, 0, fields && values) }
	switch {
	case absent:
		none(c.W)
	case large:
		elements.BesideRead(c, size, func(st store, db int, key []byte, w *resp.Writer) (bool, error) {
			return st.ReadHash(db, key, func(h *collection.Hash) { elements.WriteHash(w, h, fields, values) })
		}, none)
	default:
		c.Bound(mark)
	}
}

func hdel(c storeCall) {
	n := int64(0)
	err := c.Store.WriteHash(c.Client.Selected(), c.Args[1], func(h *collection.Hash) error {
		for _, field := range c.Args[2:] {
			if h.Delete(field) {
				n++
			}
		}
		return nil
	})
	c.ReplyCount(n, err)
}

// readNumber replies with the result of f for the hash at the first argument, or with 0 if the key
// does not exist.
func readNumber(c storeCall, f func(h *collection.Hash) int) {
	if readHash(c, func(h *collection.Hash) { c.W.Int(int64(f(h))) }) {
		c.W.Int(0)
	}
}

func hexists(c storeCall) {
	readNumber(c, func(h *collection.Hash) int {
		if _, ok := h.Get(c.Args[2]); ok {
			return 1
		}
		return 0
	})
}

func hlen(c storeCall) { readNumber(c, (*collection.Hash).Len) }

func hstrlen(c storeCall) {
	readNumber(c, func(h *collection.Hash) int {
		value, _ := h.Get(c.Args[2])
		return len(value)
	})
}

const (
	errHashNotInteger resp.Error = "ERR hash value is not an integer"
	errHashNotFloat   resp.Error = "ERR hash value is not a float"
	errNotFinitePlain resp.Error = "ERR value is NaN or Infinity"
)

func hincrby(c storeCall) {
	by, ok := arg.Int(c.Args[3])
	if !ok {
		c.Fail(resp.ErrNotInteger)
		return
	}
	sum := int64(0)
	err := c.Store.WriteHash(c.Client.Selected(), c.Args[1], func(h *collection.Hash) error {
		was, ok := int64(0), true
		if text, exists := h.Get(c.Args[2]); exists {
			was, ok = arg.Int(text)
		}
		if !ok {
			return limit.ErrNotInteger
		}
		sum = was + by
		if (sum > was) != (by > 0) {
			return limit.ErrSumOverflow
		}
		_, err := h.Set(c.Args[2], strconv.AppendInt(nil, sum, 10))
		return err
	})
	switch {
	case errors.Is(err, limit.ErrNotInteger):
		c.Fail(errHashNotInteger)
	case err != nil:
		c.Fail(elements.ElementsError(c.Call, err))
	default:
		c.W.Int(sum)
	}
}

func hincrbyfloat(c storeCall) {
	by, ok := longdouble.Parse(c.Args[3])
	switch {
	case !ok:
		c.Fail(resp.ErrNotFloat)
		return
	case by.IsInf():
		c.Fail(errNotFinitePlain)
		return
	}
	var text []byte
	err := c.Store.WriteHash(c.Client.Selected(), c.Args[1], func(h *collection.Hash) (err error) {
		was, exists := h.Get(c.Args[2])
		if !exists {
			was = []byte("0")
		}
		if text, err = longdouble.AddTexts(was, c.Args[3]); err == nil {
			_, err = h.Set(c.Args[2], text)
		}
		return err
	})
	switch {
	case errors.Is(err, longdouble.ErrNotFloat):
		c.Fail(errHashNotFloat)
	case errors.Is(err, longdouble.ErrNotFinite):
		c.Fail(command.ErrNoSum)
	case err != nil:
		c.Fail(elements.ElementsError(c.Call, err))
	default:
		c.W.Bulk(text)
	}
}
