package keys

import (
	"log/slog"
	"slices"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/resp"
)

// store is the part of the store that the commands of this group use.
type store interface {
	env.Store
	env.Keys
	env.Databases
}

// storeCall is a call of a command of this group that looks at keys in this process.
type storeCall = command.CallOn[store]

// Group returns the command group on keys of any type.
func Group() command.Group {
	return command.Group{Commands: slices.Concat(commands(), expireCommands(), scanCommands())}
}

func commands() []*command.Command {
	many := command.KeySpec{First: 1, Last: -1, Step: 1}
	return command.Entries(command.Defaults{
		Categories: command.CatKeyspace, Group: "generic", Since: "1.0.0", Complexity: "O(1)",
	}, []*command.Command{
		{
			Name: "del", Arity: -2, Flags: command.FlagWrite, Keys: many.Uses(command.UseRM | command.UseDelete),
			Summary: "Deletes one or more keys, which resets their limiters.", Syntax: "key [key ...]", Complexity: "O(N)",
			Reply: "how many keys existed", RunOn: command.On(del), Parse: askEach(decide.Delete), Answer: answerDone,
		},
		{
			Name: "unlink", Arity: -2, Flags: command.FlagWrite | command.FlagFast, Keys: many.Uses(command.UseRM | command.UseDelete),
			Summary: "Deletes one or more keys.", Syntax: "key [key ...]", Complexity: "O(N)", Reply: "how many keys existed", RunOn: command.On(del),
			Parse: askEach(decide.Delete), Answer: answerDone,
		},
		{
			Name: "exists", Arity: -2, Flags: command.FlagReadonly | command.FlagFast, Keys: many.Uses(command.UsesNothing),
			Summary: "Counts the given keys that exist.", Syntax: "key [key ...]", Complexity: "O(N)",
			Reply: "the number of keys, repetitions counted", RunOn: command.On(exists), Parse: askEach(decide.Exists), Answer: answerFound,
		},
		{
			Name: "touch", Arity: -2, Flags: command.FlagReadonly | command.FlagFast, Keys: many.Uses(command.UsesNothing),
			Summary: "Counts the given keys that exist.", Syntax: "key [key ...]", Complexity: "O(N)",
			Reply: "the number of keys, repetitions counted", RunOn: command.On(exists), Parse: askEach(decide.Exists), Answer: answerFound,
		},
		{
			Name: "type", Arity: 2, Flags: command.FlagReadonly | command.FlagFast, Keys: command.OneKey.Uses(command.UsesNothing),
			Summary: "Returns the type of the value at a key.", Syntax: "key",
			Reply: "string for CL.THROTTLE keys, ratelimit for the other limiters, none", RunOn: command.On(typeOf), Parse: askOne(decide.Type),
			Answer: answerType,
		},
		{
			Name: "rename", Arity: 3, Flags: command.FlagWrite,
			Keys:    command.KeySpec{First: 1, Last: 2, Step: 1, Use: command.UsesTakes, Rest: command.UsesSets},
			Summary: "Renames a key, overwriting the destination.", Syntax: "key newkey", Reply: "OK",
			RunOn: command.On(func(c storeCall) { rename(c, false) }), Serves: true,
		},
		{
			Name: "renamenx", Arity: 3, Flags: command.FlagWrite | command.FlagFast,
			Keys:    command.KeySpec{First: 1, Last: 2, Step: 1, Use: command.UsesTakes, Rest: command.UseOW | command.UseInsert},
			Summary: "Renames a key if the destination does not exist.", Syntax: "key newkey",
			Reply: "1 if the key was renamed, 0 if the destination existed", RunOn: command.On(func(c storeCall) { rename(c, true) }), Serves: true,
		},
		{
			Name: "randomkey", Arity: 1, Flags: command.FlagReadonly | command.FlagEveryKey,
			Summary: "Returns a random key of the database.", Reply: "a key, or null in an empty database", RunOn: command.On(randomKey),
		},
		{
			Name: "dbsize", Arity: 1, Flags: command.FlagReadonly | command.FlagFast | command.FlagFence, Group: "server",
			Summary: "Returns the number of keys in the database.", Reply: "the number of keys", RunOn: command.On(dbsize), Parse: askAll(decide.Count),
			Answer: answerSize,
		},
		{
			Name: "flushdb", Arity: -1, Flags: command.FlagWrite | command.FlagEveryKey | command.FlagAudit | command.FlagFence,
			Categories: command.CatKeyspace | command.CatDangerous, Group: "server",
			Summary: "Removes all keys of the database.", Syntax: "[ASYNC | SYNC]", Reply: "OK", RunOn: command.On(flushDB), Parse: askFlush,
			Answer:     answerOK,
			Disclosure: command.Disclosure{Change: "flush", AuditAttrs: auditDatabase},
		},
		{
			Name: "flushall", Arity: -1, Flags: command.FlagWrite | command.FlagEveryKey | command.FlagAudit,
			Categories: command.CatKeyspace | command.CatDangerous, Group: "server",
			Summary: "Removes all keys of all databases.", Syntax: "[ASYNC | SYNC]", Reply: "OK", RunOn: command.On(flushAll),
			Disclosure: command.Disclosure{Change: "flush"},
		},
	})
}

// auditDatabase is the AuditAttrs function of FLUSHDB: it returns the selected database.
func auditDatabase(c *command.Call) []slog.Attr {
	return []slog.Attr{slog.Int("db", c.Client.Selected())}
}

// countKeys replies with the number of the command's keys for which f returns true.
func countKeys(c storeCall, f func(db int, key []byte) bool) {
	n, db := int64(0), c.Client.Selected()
	for i, key := range c.Args[1:] {
		if i%command.MaxRequests == 0 && len(c.Args) > 2 {
			c.Store.Prefetch(db, c.Args[i+1:min(i+1+command.MaxRequests, len(c.Args))])
		}
		if f(db, key) {
			n++
		}
	}
	c.W.Int(n)
}

func del(c storeCall) { countKeys(c, c.Store.Delete) }

func exists(c storeCall) {
	countKeys(c, c.Store.Exists)
}

func typeOf(c storeCall) { c.W.Status(c.Store.TypeName(c.Client.Selected(), c.Args[1])) }

// rename is the Run function of RENAME and, if nx is set, of RENAMENX. RENAMENX replies with 1, or
// with 0 if the new key exists. Both fail if the old key does not exist.
func rename(c storeCall, nx bool) {
	renamed, found := c.Store.Rename(c.Client.Selected(), c.Args[1], c.Args[2], nx)
	switch {
	case !found:
		c.Fail(resp.ErrNoSuchKey)
	case !nx:
		c.OK()
	case renamed:
		c.W.Int(1)
	default:
		c.W.Int(0)
	}
}

func randomKey(c storeCall) {
	key, ok := c.Store.RandomKey(c.Text[:0], c.Client.Selected())
	if !ok {
		c.W.Null()
		return
	}
	c.KeepText(key)
	c.W.Bulk(key)
}

func dbsize(c storeCall) { c.W.Int(int64(c.Store.Len(c.Client.Selected()))) }

// flushMode returns a syntax error if args are not the arguments of a FLUSHDB or FLUSHALL; "" if
// they are. The modes ASYNC and SYNC do the same here: the tables are dropped at once, and their
// memory is freed in the background.
func flushMode(args [][]byte) resp.Error {
	switch {
	case len(args) == 1:
		return ""
	case len(args) == 2 && (arg.IsWord(args[1], "ASYNC") || arg.IsWord(args[1], "SYNC")):
		return ""
	}
	return resp.ErrSyntax
}

func flushDB(c storeCall) {
	if err := flushMode(c.Args); err != "" {
		c.Fail(err)
		return
	}
	db := c.Client.Selected()
	c.Offload(func(st store, w *resp.Writer) {
		st.Flush(db)
		w.Status("OK")
	})
}

func askFlush(c *command.Call) resp.Error {
	if err := flushMode(c.Args); err != "" {
		return err
	}
	ask(c, decide.Flush, nil)
	return ""
}

func answerOK(c *command.Call, _ *decide.Ask) { c.OK() }

func flushAll(c storeCall) {
	if err := flushMode(c.Args); err != "" {
		c.Fail(err)
		return
	}
	c.Offload(func(st store, w *resp.Writer) {
		st.FlushAll()
		w.Status("OK")
	})
}
