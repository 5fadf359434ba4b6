package keys

import (
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

func expireCommands() []*command.Command {
	const options = " [NX | XX | GT | LT]"
	set := func(name, syntax, summary string, unit time.Duration, absolute bool) *command.Command {
		return &command.Command{
			Name: name, Arity: -3, Flags: command.FlagWrite | command.FlagFast, Keys: command.OneKey, Categories: command.CatKeyspace, Group: "generic",
			Summary: summary, Syntax: "key " + syntax + options,
			Since: "1.0.0", Complexity: "O(1)", Reply: "1 if the expiry was set, 0 if not",
			Run:   func(c *command.Call) { expire(c, unit, absolute) },
			Parse: askExpire(unit, absolute), Answer: answerDone,
		}
	}
	read := func(name, summary, reply string, run func(*command.Call), answer func(*command.Call, *decide.Ask)) *command.Command {
		return &command.Command{
			Name: name, Arity: 2, Flags: command.FlagReadonly | command.FlagFast, Keys: command.OneKey, Categories: command.CatKeyspace, Group: "generic",
			Summary: summary, Syntax: "key", Since: "1.0.0", Complexity: "O(1)", Reply: reply, Run: run,
			Parse: askOne(decide.Expiry), Answer: answer,
		}
	}
	return []*command.Command{
		set("expire", "seconds", "Sets the expiry of a key in seconds.", time.Second, false),
		set("pexpire", "milliseconds", "Sets the expiry of a key in milliseconds.", time.Millisecond, false),
		set("expireat", "unix-time-seconds", "Sets the expiry of a key to a Unix time.", time.Second, true),
		set("pexpireat", "unix-time-milliseconds", "Sets the expiry of a key to a Unix time in milliseconds.", time.Millisecond, true),
		read("ttl", "Returns the time to live of a key in seconds.", "seconds, -1 without expiry, -2 without the key",
			func(c *command.Call) { ttl(c, time.Second) }, answerTTL(time.Second)),
		read("pttl", "Returns the time to live of a key in milliseconds, rounded up.", "milliseconds, -1 without expiry, -2 without the key",
			func(c *command.Call) { ttl(c, time.Millisecond) }, answerTTL(time.Millisecond)),
		read("expiretime", "Returns the expiry of a key as a Unix time.", "seconds, -1 without expiry, -2 without the key",
			func(c *command.Call) { expireTime(c, time.Second) }, answerExpireTime(time.Second)),
		read("pexpiretime", "Returns the expiry of a key as a Unix time in milliseconds.", "milliseconds, -1 without expiry, -2 without the key",
			func(c *command.Call) { expireTime(c, time.Millisecond) }, answerExpireTime(time.Millisecond)),
		{
			Name: "persist", Arity: 2, Flags: command.FlagWrite | command.FlagFast, Keys: command.OneKey, Categories: command.CatKeyspace, Group: "generic",
			Summary: "Removes the expiry of a key.", Syntax: "key",
			Since: "1.0.0", Complexity: "O(1)", Reply: "1 if there was one, 0 if not", Run: persist,
			Parse: askOne(decide.Persist), Answer: answerDone,
		},
	}
}

// expire implements EXPIRE, PEXPIRE, EXPIREAT and PEXPIREAT.
func expire(c *command.Call, unit time.Duration, absolute bool) {
	at, cond, err := parseExpire(c, unit, absolute)
	switch {
	case err != "":
		c.Fail(err)
	case c.Store.Expire(c.Client.Selected(), c.Args[1], at, cond):
		c.W.Int(1)
	default:
		c.W.Int(0)
	}
}

// parseExpire parses the expiry of a key and its condition.
func parseExpire(c *command.Call, unit time.Duration, absolute bool) (limit.Instant, decide.ExpireCondition, resp.Error) {
	cond, err := parseExpireOptions(c.Args[3:])
	if err != "" {
		return 0, 0, err
	}
	n, ok := arg.Int(c.Args[2])
	if !ok {
		return 0, 0, resp.ErrNotInteger
	}
	at, ok := command.ExpiryInstant(c.Store, n, unit, absolute)
	if !ok {
		return 0, 0, resp.Error("ERR invalid expire time in '" + c.Cmd.Name + "' command")
	}
	return at, cond, ""
}

// askExpire returns the field Parse of EXPIRE, PEXPIRE, EXPIREAT or PEXPIREAT.
func askExpire(unit time.Duration, absolute bool) func(c *command.Call) resp.Error {
	return func(c *command.Call) resp.Error {
		at, cond, err := parseExpire(c, unit, absolute)
		if err == "" {
			a := ask(c, decide.Expire, c.Args[1])
			a.Admin.At, a.Admin.Condition = at, cond
		}
		return err
	}
}

func parseExpireOptions(args [][]byte) (decide.ExpireCondition, resp.Error) {
	var cond decide.ExpireCondition
	for _, a := range args {
		switch {
		case arg.IsWord(a, "NX"):
			cond |= decide.ExpireIfNone
		case arg.IsWord(a, "XX"):
			cond |= decide.ExpireIfAny
		case arg.IsWord(a, "GT"):
			cond |= decide.ExpireIfLater
		case arg.IsWord(a, "LT"):
			cond |= decide.ExpireIfEarlier
		default:
			return 0, resp.Error("ERR Unsupported option " + string(command.Echo(a, command.MaxEcho)))
		}
	}
	switch {
	case cond&decide.ExpireIfNone != 0 && cond != decide.ExpireIfNone:
		return 0, "ERR NX and XX, GT or LT options at the same time are not compatible"
	case cond&decide.ExpireIfLater != 0 && cond&decide.ExpireIfEarlier != 0:
		return 0, "ERR GT and LT options at the same time are not compatible"
	}
	return cond, ""
}

// ttl implements TTL and PTTL.
func ttl(c *command.Call, unit time.Duration) {
	at, has, found := c.Store.Expiry(c.Client.Selected(), c.Args[1])
	if noExpiry(c, has, found) {
		replyTTL(c, at.Sub(c.Store.Now()), unit)
	}
}

// expireTime implements EXPIRETIME and PEXPIRETIME, in wall-clock time.
func expireTime(c *command.Call, unit time.Duration) {
	at, has, found := c.Store.Expiry(c.Client.Selected(), c.Args[1])
	if noExpiry(c, has, found) {
		replyTTL(c, time.Duration(c.Store.Civil(at)), unit)
	}
}

// replyTTL replies with milliseconds, rounded up, because a key lives until its exact nanosecond.
// Seconds are the milliseconds rounded to the nearest second, as in Redis.
func replyTTL(c *command.Call, d, unit time.Duration) {
	ms := limit.MillisUp(d)
	if unit == time.Second {
		ms = (ms + 500) / 1000
	}
	c.W.Int(ms)
}

// answerTTL returns the field Answer of TTL and PTTL.
func answerTTL(unit time.Duration) func(c *command.Call, a *decide.Ask) {
	return func(c *command.Call, a *decide.Ask) {
		if r := &a.Result; noExpiry(c, r.HasExpiry, r.Found) {
			replyTTL(c, r.Expiry.Sub(a.Now), unit)
		}
	}
}

// answerExpireTime returns the field Answer of EXPIRETIME and PEXPIRETIME.
func answerExpireTime(unit time.Duration) func(c *command.Call, a *decide.Ask) {
	return func(c *command.Call, a *decide.Ask) {
		if r := &a.Result; noExpiry(c, r.HasExpiry, r.Found) {
			replyTTL(c, time.Duration(c.Store.Civil(r.Expiry)), unit)
		}
	}
}

// noExpiry replies with -2 if there is no key and with -1 if it has no expiry. It reports whether
// the key has one.
func noExpiry(c *command.Call, has, found bool) bool {
	c.NoteLookup(found)
	switch {
	case !found:
		c.W.Int(-2)
	case !has:
		c.W.Int(-1)
	}
	return found && has
}

func persist(c *command.Call) {
	if c.Store.Persist(c.Client.Selected(), c.Args[1]) {
		c.W.Int(1)
	} else {
		c.W.Int(0)
	}
}
