package limiters

import (
	"math"
	"slices"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands/internal/elements"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/ratelimit/hotkeys"
	"github.com/cellserver/cellserver/resp"
)

const (
	topDefault = 10
	topMost    = 1000
)

// topCall has the parsed arguments of RL.TOP.
type topCall struct {
	kind    hotkeys.Kind
	count   int64
	db      int // valid if hasDB is set
	hasDB   bool
	details bool
}

func rlTop(c *command.Call) {
	call, err := parseTop(c.Args[1:], c.Server.Limits().Databases)
	if err != "" {
		c.Fail(err)
		return
	}
	now := c.Store.Now()
	command.Scratch[scratch](c).recorder.Flush(now) // the reply includes what this batch has noted
	db := c.Client.Selected()
	switch {
	case call.hasDB:
		db = call.db
	case call.details:
		db = hotkeys.EveryDatabase
	}
	keys := command.ServerState[ratelimit.Service](c).Keys
	top := keys.Top(call.kind, now, db, int(min(call.count, topMost)), readable(c))
	if call.details {
		writeTopDetails(c.W, top, func(k *hotkeys.Key) bool { return keys.TwoLimits(k.DB, k.Name, now) })
		return
	}
	c.W.Map(len(top))
	for _, k := range top {
		c.W.BulkString(k.Name)
		c.W.Int(k.Count)
	}
}

// readable returns a function that reports whether the caller's user may read a key; nil if the
// user may read all keys.
func readable(c *command.Call) func(key string) bool {
	r := c.Client.User.Load().Rules()
	if slices.ContainsFunc(r.Selectors(), (*acl.Selector).AllKeys) {
		return nil
	}
	return func(key string) bool {
		return slices.ContainsFunc(r.Selectors(), func(s *acl.Selector) bool { return s.Key([]byte(key), acl.Read) })
	}
}

func writeTopDetails(w *resp.Writer, top []hotkeys.Key, twoLimits func(k *hotkeys.Key) bool) {
	w.Array(len(top))
	for i := range top {
		k := &top[i]
		w.Map(6)
		w.BulkString("db")
		w.Int(int64(k.DB))
		w.BulkString("key")
		w.BulkString(k.Name)
		w.BulkString("count")
		w.Int(k.Count)
		w.BulkString("per-second")
		w.Double(roundTo(k.PerSecond, 100))
		w.BulkString("share")
		w.Double(roundTo(k.Share, 10_000))
		w.BulkString("two-limits")
		w.Int(elements.OneIf(twoLimits(k)))
	}
}

// roundTo rounds f to a multiple of 1/unit. The values are estimates, so more digits would have no
// meaning.
func roundTo(f, unit float64) float64 { return math.Round(f*unit) / unit }

// parseTop parses `[DENIED | CALLS | REPEATS] [COUNT count] [DB index] [WITHDETAILS]`, in any order.
// databases is the number of databases. The error is "" on success.
func parseTop(args [][]byte, databases int) (call topCall, err resp.Error) {
	call.count = topDefault
	var table, count bool
	for len(args) > 0 {
		word, rest := args[0], args[1:]
		switch {
		case arg.IsWord(word, "DENIED"):
			err = arg.Once(word, &table)
		case arg.IsWord(word, "CALLS"):
			call.kind, err = hotkeys.Calls, arg.Once(word, &table)
		case arg.IsWord(word, "REPEATS"):
			call.kind, err = hotkeys.Repeats, arg.Once(word, &table)
		case arg.IsWord(word, "WITHDETAILS"):
			err = arg.Once(word, &call.details)
		case arg.IsWord(word, "COUNT") && len(rest) > 0:
			if err = arg.Once(word, &count); err == "" {
				err = arg.Positive(rest[0], "COUNT", &call.count)
			}
			rest = rest[1:]
		case arg.IsWord(word, "DB") && len(rest) > 0:
			if err = arg.Once(word, &call.hasDB); err == "" {
				call.db, err = parseDatabase(rest[0], databases)
			}
			rest = rest[1:]
		default:
			err = resp.SyntaxNear(word)
		}
		if err != "" {
			return call, err
		}
		args = rest
	}
	return call, ""
}

// parseDatabase parses b as the index of a database. databases is the number of databases. The
// error is "" on success.
func parseDatabase(b []byte, databases int) (db int, err resp.Error) {
	n, ok := arg.Int(b)
	switch {
	case !ok:
		return 0, resp.ErrNotInteger
	case n < 0 || n >= int64(databases):
		return 0, resp.ErrDBIndex
	}
	return int(n), ""
}
