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
	db      int // the database of the keys to show; valid if hasDB is set
	hasDB   bool
	details bool
	fleet   bool
}

func rlTop(c *command.Call) {
	call, err := parseTop(c.Args[1:], c.Server.Limits().Databases)
	if err != "" {
		c.Fail(err)
		return
	}
	now := c.Store.Now()
	command.Scratch[scratch](c).recorder.Flush(now) // Flush makes the reply include the calls that this batch has recorded
	switch {
	case call.hasDB:
	case call.details:
		call.db = hotkeys.EveryDatabase
	default:
		call.db = c.Client.Selected()
	}
	keys, shown := command.ServerState[ratelimit.Service](c).Keys, readable(c)
	if call.fleet {
		fleetTop(c, call, keys.Summary(now), shown)
		return
	}
	top := keys.Top(call.kind, now, call.db, call.most(), shown)
	if call.details {
		writeTopDetails(c.W, top, false, func(k *hotkeys.Key) bool { return keys.TwoLimits(k.DB, k.Name, now) })
		return
	}
	writeTop(c.W, top)
}

// most returns the maximum number of keys in the reply.
func (call *topCall) most() int { return int(min(call.count, topMost)) }

// errFleetInTransaction is the error of a call that would make all clients wait for the store.
const errFleetInTransaction resp.Error = "ERR FLEET asks the store for other servers, which is not possible inside a transaction"

// fleetTop replies with the keys of all servers of the store. own is the summary of this server.
func fleetTop(c *command.Call, call topCall, own hotkeys.Summary, shown func(key string) bool) {
	published := c.Server.Options.Summaries
	if published == nil {
		writeFleet(c.W, call, hotkeys.TopOf(own, nil, call.kind, call.db, call.most(), shown))
		return
	}
	if c.Client.Exclusive {
		c.Fail(errFleetInTransaction)
		return
	}
	var others [][]byte
	var err error
	c.AskAside(func() { others, err = published() }, func(w *resp.Writer) {
		if err != nil {
			w.Error(command.StoreError(err))
			return
		}
		writeFleet(w, call, hotkeys.TopOf(own, others, call.kind, call.db, call.most(), shown))
	})
}

func writeFleet(w *resp.Writer, call topCall, top []hotkeys.Key) {
	if call.details {
		writeTopDetails(w, top, true, nil)
		return
	}
	writeTop(w, top)
}

func writeTop(w *resp.Writer, top []hotkeys.Key) {
	w.Map(len(top))
	for i := range top {
		w.BulkString(top[i].Name)
		w.Int(top[i].Count)
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

// writeTopDetails writes the details of top. If fleet is set, they are of several servers, and otherwise of this one.
// twoLimits reports for a key of this server whether two limits share it.
func writeTopDetails(w *resp.Writer, top []hotkeys.Key, fleet bool, twoLimits func(k *hotkeys.Key) bool) {
	w.Array(len(top))
	for i := range top {
		k := &top[i]
		w.Map(6 + int(elements.OneIf(fleet)))
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
		if fleet {
			w.BulkString("servers")
			w.Int(int64(k.Servers))
			w.BulkString("missing")
			w.Int(k.Missing)
			continue
		}
		w.BulkString("two-limits")
		w.Int(elements.OneIf(twoLimits(k)))
	}
}

// roundTo rounds f to a multiple of 1/unit. The values are estimates, so more digits would have no
// meaning.
func roundTo(f, unit float64) float64 { return math.Round(f*unit) / unit }

// parseTop parses `[DENIED | CALLS | REPEATS] [COUNT count] [DB index] [WITHDETAILS] [FLEET]`, in any order.
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
		case arg.IsWord(word, "FLEET"):
			err = arg.Once(word, &call.fleet)
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
