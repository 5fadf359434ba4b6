package keys

import (
	"bytes"
	"math"
	"strconv"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands/internal/elements"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/glob"
	"github.com/cellserver/cellserver/resp"
)

func scanCommands() []*command.Command {
	return command.Entries(command.Defaults{Group: "generic", Since: "1.0.0"}, []*command.Command{
		{
			Name: "scan", Arity: -2, Flags: command.FlagReadonly | command.FlagEveryKey | command.FlagFence,
			Categories: command.CatKeyspace,
			Summary:    "Iterates over the keys of the database.", Syntax: "cursor [MATCH pattern] [COUNT count] [TYPE type]",
			Complexity: "O(1) for every call, O(N) for a full iteration", Reply: "the next cursor and an array of keys", RunOn: command.On(scan),
			Parse: askScan, Answer: answerScan,
		},
		{
			Name: "keys", Arity: 2, Flags: command.FlagReadonly | command.FlagEveryKey,
			Categories: command.CatKeyspace | command.CatDangerous,
			Summary:    "Returns all keys that match a pattern.", Syntax: "pattern", Complexity: "O(N)", Reply: "an array of keys",
			RunOn: command.On(keysCommand),
		},
	})
}

// scanCall has the parsed arguments of SCAN or KEYS. pattern and typ are copies, because a large
// scan runs after the input is gone.
type scanCall struct {
	cursor  uint64
	count   int
	pattern []byte // the pattern that keys must match; nil matches all keys
	typ     string // the type that values must have; "" matches all types
}

const (
	scanDefaultCount = 10
	// scanInline is the maximum COUNT of a scan that runs on an event loop.
	scanInline = 1000
	scanMost   = 1 << 20 // the maximum number of keys in one step, whatever COUNT is
	scanPage   = 256     // the maximum number of keys that are copied while a shard is locked
	// scanWork is the maximum cost of matching on an event loop: the sum over all keys of the
	// length of the pattern times the length of the key. It takes a few milliseconds at worst.
	scanWork = 1 << 21
)

func scan(c storeCall) {
	var call scanCall
	if err := parseScan(c.Args[1:], &call); err != "" {
		c.Fail(err)
		return
	}
	db := c.Client.Selected()
	c.Work += call.count
	if call.count <= scanInline && scanStep(c.Store, c.W, db, &call, scanWork) {
		return
	}
	c.OffloadSized(func(st store) int { return min(call.count, st.Len(db)) * nameBytes },
		func(st store, w *resp.Writer) { scanStep(st, w, db, &call, math.MaxInt) })
}

// askScan is the Parse function of SCAN. It lowers the count, which is only a hint, so that a step
// of the Remote is short.
func askScan(c *command.Call) resp.Error {
	var call scanCall
	if err := parseScan(c.Args[1:], &call); err != "" {
		return err
	}
	a := ask(c, decide.Scan, nil)
	a.Admin.Cursor, a.Admin.Count, a.Admin.Match, a.Admin.TypeName = call.cursor, min(call.count, scanInline), call.pattern, call.typ
	return ""
}

// answerScan is the Answer function of SCAN. It replies with the matching keys of a step. If it
// takes much work to match them, it does so in the background.
func answerScan(c *command.Call, a *decide.Ask) {
	call := scanCall{pattern: a.Admin.Match, typ: a.Admin.TypeName}
	found := a.Result
	if writeScan(c.W, &call, &found, scanWork) {
		return
	}
	call.pattern = append([]byte{}, call.pattern...) // the pattern is copied, because the ask is reused
	c.Offload(func(_ env.Store, w *resp.Writer) { writeScan(w, &call, &found, math.MaxInt) })
}

// writeScan replies with the keys of step that match. If the cost of matching, which is computed as
// for scanWork, would exceed work, it writes nothing and returns false.
func writeScan(w *resp.Writer, call *scanCall, step *decide.AdminResult, work int) bool {
	found, n := resp.Writer{Pieces: w.Pieces}, 0
	for _, k := range step.Keys {
		if work -= len(call.pattern) * len(k.Key); work < 0 {
			return false
		}
		if call.matches(k.Key, k.Type) {
			n++
			addName(&found, k.Key)
		}
	}
	writeStep(w, step.Cursor, n, found.Take())
	return true
}

func parseScan(args [][]byte, call *scanCall) resp.Error {
	cursor, ok := elements.ParseCursor(args[0])
	if !ok {
		return resp.ErrInvalidCursor
	}
	call.cursor, call.count = cursor, scanDefaultCount
	for args = args[1:]; len(args) > 0; args = args[2:] {
		if len(args) < 2 {
			return resp.ErrSyntax
		}
		switch {
		case arg.IsWord(args[0], "COUNT"):
			n, ok := arg.Int(args[1])
			if !ok {
				return resp.ErrNotInteger
			}
			if n < 1 {
				return resp.ErrSyntax
			}
			call.count = int(min(n, scanMost))
		case arg.IsWord(args[0], "MATCH"):
			if len(args[1]) > glob.MaxPattern {
				return command.ErrPatternTooLong
			}
			call.pattern = bytes.Clone(args[1])
		case arg.IsWord(args[0], "TYPE"):
			call.typ = string(bytes.ToLower(args[1]))
		default:
			return resp.ErrSyntax
		}
	}
	return ""
}

func (s *scanCall) matches(key []byte, typ string) bool {
	return (s.typ == "" || s.typ == typ) && (s.pattern == nil || glob.Match(s.pattern, key))
}

// scanStep reads one step of the iteration over the database db and replies with its keys, or with
// an error if they are too long. call has the cursor and the filters. If the cost of matching,
// which is computed as for scanWork, would exceed work, it writes nothing and returns false.
func scanStep(st store, w *resp.Writer, db int, call *scanCall, work int) bool {
	found := resp.Writer{Pieces: w.Pieces}
	n := 0
	next := walk(st, db, call.cursor, call.count, func(key []byte, typ string) bool {
		work -= len(call.pattern) * len(key)
		if work >= 0 && call.matches(key, typ) {
			n++
			addName(&found, key)
		}
		return work >= 0 && found.Size(0) <= command.Longest(w)
	})
	switch {
	case work < 0:
		return false
	case found.Size(0) > command.Longest(w):
		found.Cut(0)
		w.Error(command.ErrReplyTooLong)
		return true
	}
	writeStep(w, next, n, found.Take())
	return true
}

// writeStep replies with the cursor next and n keys. keys has the encoded keys.
func writeStep(w *resp.Writer, next uint64, n int, keys resp.Reply) {
	w.Array(2)
	w.BulkString(strconv.FormatUint(next, 10))
	w.Array(n)
	w.Reply(keys)
}

// nameBytes is the size, in bytes, that is assumed for a key in a reply when memory is requested
// before the keys are known. Longer keys are accounted as they are written.
const nameBytes = 64

func addName(found *resp.Writer, key []byte) {
	found.Bulk(key)
	if found.Pieces != nil {
		found.Spill(0)
	}
}

// walk calls f for about count keys of the database db, from cursor on, until f returns false. next
// is the next cursor; 0 at the end of the iteration. f may be slow: walk copies the keys in pages,
// so that no shard is locked while f runs.
func walk(st store, db int, cursor uint64, count int, f func(key []byte, typ string) bool) (next uint64) {
	type entry struct {
		end int // the end of the key in text
		typ string
	}
	var text []byte
	var page []entry
	for count > 0 {
		text, page = text[:0], page[:0]
		cursor = st.Scan(db, cursor, min(count, scanPage), func(key []byte, typ string) {
			text = append(text, key...)
			page = append(page, entry{len(text), typ})
		})
		begin := 0
		for _, e := range page {
			if !f(text[begin:e.end], e.typ) {
				return cursor
			}
			begin = e.end
		}
		if cursor == 0 {
			break
		}
		count -= max(1, len(page))
	}
	return cursor
}

func keysCommand(c storeCall) {
	if len(c.Args[1]) > glob.MaxPattern {
		c.Fail(command.ErrPatternTooLong)
		return
	}
	call := scanCall{pattern: bytes.Clone(c.Args[1])}
	db := c.Client.Selected()
	e := c.Server
	c.OffloadSized(func(st store) int { return 2 * st.Len(db) * nameBytes }, // twice, because a set also has the keys
		func(st store, w *resp.Writer) { allKeys(e, st, w, db, &call) })
}

// allKeys replies with every matching key once. It remembers the keys, because a scan may return a
// key twice if the table grows meanwhile. If the reply gets too long, or the server is closed, it
// stops and replies with an error.
func allKeys(e *command.Server, st store, w *resp.Writer, db int, call *scanCall) {
	found := resp.Writer{Pieces: w.Pieces}
	seen := make(map[string]struct{})
	more := func() bool { return found.Size(0) <= command.Longest(w) && !e.Ended.Load() }
	walk(st, db, 0, math.MaxInt, func(key []byte, typ string) bool {
		if _, twice := seen[string(key)]; !twice && call.matches(key, typ) {
			seen[string(key)] = struct{}{}
			addName(&found, key)
		}
		return more()
	})
	if !more() {
		found.Cut(0)
		w.Error(command.ErrReplyTooLong)
		return
	}
	w.Array(len(seen))
	w.Reply(found.Take())
}
