package keys

import (
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

func expireCommands() []*command.Command {
	const options = " [NX | XX | GT | LT]"

	return command.Entries(command.Defaults{
		Categories: command.CatKeyspace, Group: "generic", Since: "1.0.0", Complexity: "O(1)",
	}, []*command.Command{
		{
			Name: "expire", Arity: -3, Flags: command.FlagWrite | command.FlagFast, Keys: command.OneKey.Uses(command.UsesUpdates),
			Summary: "Sets the expiry of a key in seconds.", Syntax: "key seconds" + options, Reply: "1 if the expiry was set, 0 if not",
			RunOn: command.On(func(c storeCall) { expire(c, time.Second, false) }), Parse: askExpire(time.Second, false), Answer: answerDone,
		},
		{
			Name: "pexpire", Arity: -3, Flags: command.FlagWrite | command.FlagFast, Keys: command.OneKey.Uses(command.UsesUpdates),
			Summary: "Sets the expiry of a key in milliseconds.", Syntax: "key milliseconds" + options,
			Reply: "1 if the expiry was set, 0 if not", RunOn: command.On(func(c storeCall) { expire(c, time.Millisecond, false) }),
			Parse: askExpire(time.Millisecond, false), Answer: answerDone,
		},
		{
			Name: "expireat", Arity: -3, Flags: command.FlagWrite | command.FlagFast, Keys: command.OneKey.Uses(command.UsesUpdates),
			Summary: "Sets the expiry of a key to a Unix time.", Syntax: "key unix-time-seconds" + options,
			Reply: "1 if the expiry was set, 0 if not", RunOn: command.On(func(c storeCall) { expire(c, time.Second, true) }),
			Parse: askExpire(time.Second, true), Answer: answerDone,
		},
		{
			Name: "pexpireat", Arity: -3, Flags: command.FlagWrite | command.FlagFast, Keys: command.OneKey.Uses(command.UsesUpdates),
			Summary: "Sets the expiry of a key to a Unix time in milliseconds.", Syntax: "key unix-time-milliseconds" + options,
			Reply: "1 if the expiry was set, 0 if not", RunOn: command.On(func(c storeCall) { expire(c, time.Millisecond, true) }),
			Parse: askExpire(time.Millisecond, true), Answer: answerDone,
		},
		{
			Name: "ttl", Arity: 2, Flags: command.FlagReadonly | command.FlagFast, Keys: command.OneKey,
			Summary: "Returns the time to live of a key in seconds.", Syntax: "key",
			Reply: "seconds, -1 without expiry, -2 without the key", RunOn: command.On(func(c storeCall) { ttl(c, time.Second) }),
			Parse: askOne(decide.Expiry), Answer: answerTTL(time.Second),
		},
		{
			Name: "pttl", Arity: 2, Flags: command.FlagReadonly | command.FlagFast, Keys: command.OneKey,
			Summary: "Returns the time to live of a key in milliseconds, rounded up.", Syntax: "key",
			Reply: "milliseconds, -1 without expiry, -2 without the key", RunOn: command.On(func(c storeCall) { ttl(c, time.Millisecond) }),
			Parse: askOne(decide.Expiry), Answer: answerTTL(time.Millisecond),
		},
		{
			Name: "expiretime", Arity: 2, Flags: command.FlagReadonly | command.FlagFast, Keys: command.OneKey,
			Summary: "Returns the expiry of a key as a Unix time.", Syntax: "key",
			Reply: "seconds, -1 without expiry, -2 without the key", RunOn: command.On(func(c storeCall) { expireTime(c, time.Second) }),
			Parse: askOne(decide.Expiry), Answer: answerExpireTime(time.Second),
		},
		{
			Name: "pexpiretime", Arity: 2, Flags: command.FlagReadonly | command.FlagFast, Keys: command.OneKey,
			Summary: "Returns the expiry of a key as a Unix time in milliseconds.", Syntax: "key",
			Reply: "milliseconds, -1 without expiry, -2 without the key", RunOn: command.On(func(c storeCall) { expireTime(c, time.Millisecond) }),
			Parse: askOne(decide.Expiry), Answer: answerExpireTime(time.Millisecond),
		},
		{
			Name: "persist", Arity: 2, Flags: command.FlagWrite | command.FlagFast, Keys: command.OneKey.Uses(command.UsesUpdates),
			Summary: "Removes the expiry of a key.", Syntax: "key", Reply: "1 if there was one, 0 if not", RunOn: command.On(persist),
			Parse: askOne(decide.Persist), Answer: answerDone,
		},
	})
}

// expire is the Run function of EXPIRE, PEXPIRE, EXPIREAT and PEXPIREAT. unit and absolute say what
// the command's number means: see [command.ExpiryInstant]. The reply is 1 if the expiry was
// changed, and otherwise 0.
func expire(c storeCall, unit time.Duration, absolute bool) {
	at, cond, err := parseExpire(c.Call, unit, absolute)
	switch {
	case err != "":
		c.Fail(err)
	case c.Store.Expire(c.Client.Selected(), c.Args[1], at, cond):
		c.W.Int(1)
	default:
		c.W.Int(0)
	}
}

// parseExpire parses the number of an expiry command in unit, and the condition that its options
// give. The error is "" on success.
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

// askExpire returns the Parse function of EXPIRE, PEXPIRE, EXPIREAT or PEXPIREAT, depending on unit
// and absolute.
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

// ttl is the Run function of TTL (unit is a second) and PTTL (unit is a millisecond). The reply is
// -2 if the key does not exist, and -1 if it has no expiry.
func ttl(c storeCall, unit time.Duration) {
	at, has, found := c.Store.Expiry(c.Client.Selected(), c.Args[1])
	if noExpiry(c.Call, has, found) {
		replyTTL(c.Call, at.Sub(c.Store.Now()), unit)
	}
}

// expireTime is the Run function of EXPIRETIME (unit is a second) and PEXPIRETIME (unit is a
// millisecond). Both reply with a time of the wall clock. The reply is -2 if the key does not
// exist, and -1 if it has no expiry.
func expireTime(c storeCall, unit time.Duration) {
	at, has, found := c.Store.Expiry(c.Client.Selected(), c.Args[1])
	if noExpiry(c.Call, has, found) {
		replyTTL(c.Call, time.Duration(c.Store.Civil(at)), unit)
	}
}

// replyTTL replies with d in unit. Milliseconds are rounded up, because a key lives until its exact
// nanosecond. Seconds are the milliseconds rounded to the nearest second, as in Redis.
func replyTTL(c *command.Call, d, unit time.Duration) {
	ms := limit.MillisUp(d)
	if unit == time.Second {
		ms = (ms + 500) / 1000
	}
	c.W.Int(ms)
}

// answerTTL returns the Answer function of TTL or PTTL, depending on unit.
func answerTTL(unit time.Duration) func(c *command.Call, a *decide.Ask) {
	return func(c *command.Call, a *decide.Ask) {
		if r := &a.Result; noExpiry(c, r.HasExpiry, r.Found) {
			replyTTL(c, r.Expiry.Sub(a.Now), unit)
		}
	}
}

// answerExpireTime returns the Answer function of EXPIRETIME or PEXPIRETIME, depending on unit.
func answerExpireTime(unit time.Duration) func(c *command.Call, a *decide.Ask) {
	return func(c *command.Call, a *decide.Ask) {
		if r := &a.Result; noExpiry(c, r.HasExpiry, r.Found) {
			replyTTL(c, time.Duration(c.Store.Civil(r.Expiry)), unit)
		}
	}
}

// noExpiry counts the lookup of a key. It replies with -2 if the key does not exist, and with -1 if
// the key has no expiry. It returns true, without a reply, if the key has an expiry.
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

func persist(c storeCall) {
	if c.Store.Persist(c.Client.Selected(), c.Args[1]) {
		c.W.Int(1)
	} else {
		c.W.Int(0)
	}
}
