package commands

import (
	"math"
	"time"

	"github.com/cellserver/cellserver/commands/parse"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

func expireCommands() []*Command {
	const options = " [NX | XX | GT | LT]"
	set := func(name, syntax, summary string, unit time.Duration, absolute bool) *Command {
		return &Command{
			Name: name, Arity: -3, Flags: FlagWrite | FlagFast, Keys: oneKey, Categories: CatKeyspace, Group: "generic",
			Summary: summary, Syntax: "key " + syntax + options,
			Since: "1.0.0", Complexity: "O(1)", Reply: "1 if the expiry was set, 0 if not",
			Run: func(c *Ctx) { expire(c, unit, absolute) },
		}
	}
	read := func(name, summary, reply string, run func(*Ctx)) *Command {
		return &Command{
			Name: name, Arity: 2, Flags: FlagReadonly | FlagFast, Keys: oneKey, Categories: CatKeyspace, Group: "generic",
			Summary: summary, Syntax: "key", Since: "1.0.0", Complexity: "O(1)", Reply: reply, Run: run,
		}
	}
	return []*Command{
		set("expire", "seconds", "Sets the expiry of a key in seconds.", time.Second, false),
		set("pexpire", "milliseconds", "Sets the expiry of a key in milliseconds.", time.Millisecond, false),
		set("expireat", "unix-time-seconds", "Sets the expiry of a key to a Unix time.", time.Second, true),
		set("pexpireat", "unix-time-milliseconds", "Sets the expiry of a key to a Unix time in milliseconds.", time.Millisecond, true),
		read("ttl", "Returns the time to live of a key in seconds.", "seconds, -1 without expiry, -2 without the key",
			func(c *Ctx) { ttl(c, time.Second) }),
		read("pttl", "Returns the time to live of a key in milliseconds, rounded up.", "milliseconds, -1 without expiry, -2 without the key",
			func(c *Ctx) { ttl(c, time.Millisecond) }),
		read("expiretime", "Returns the expiry of a key as a Unix time.", "seconds, -1 without expiry, -2 without the key",
			func(c *Ctx) { expireTime(c, time.Second) }),
		read("pexpiretime", "Returns the expiry of a key as a Unix time in milliseconds.", "milliseconds, -1 without expiry, -2 without the key",
			func(c *Ctx) { expireTime(c, time.Millisecond) }),
		{
			Name: "persist", Arity: 2, Flags: FlagWrite | FlagFast, Keys: oneKey, Categories: CatKeyspace, Group: "generic",
			Summary: "Removes the expiry of a key.", Syntax: "key",
			Since: "1.0.0", Complexity: "O(1)", Reply: "1 if there was one, 0 if not", Run: persist,
		},
	}
}

// expire is EXPIRE, PEXPIRE, EXPIREAT and PEXPIREAT.
func expire(c *Ctx, unit time.Duration, absolute bool) {
	cond, err := parseExpireOptions(c.Args[3:])
	if err != "" {
		c.Fail(err)
		return
	}
	n, ok := parse.Int(c.Args[2])
	if !ok {
		c.Fail(resp.ErrNotInteger)
		return
	}
	at, ok := expiryInstant(c.Store, n, unit, absolute)
	if !ok {
		c.Fail(resp.Error("ERR invalid expire time in '" + c.Cmd.Name + "' command"))
		return
	}
	if c.Store.Expire(c.Client.selected(), c.Args[1], at, cond) {
		c.W.Int(1)
	} else {
		c.W.Int(0)
	}
}

// expiryInstant turns the number of an expiry command into an instant. Redis
// refuses what does not fit its milliseconds since the epoch; what fits those but
// not our nanoseconds is held at the end of time, in 2262.
func expiryInstant(st Store, n int64, unit time.Duration, absolute bool) (limit.Instant, bool) {
	perMilli := int64(unit / time.Millisecond)
	if n > math.MaxInt64/perMilli || n < math.MinInt64/perMilli {
		return 0, false
	}
	ms := n * perMilli
	if absolute {
		return st.FromCivil(limit.Instant(limit.SatMul(ms, int64(time.Millisecond)))), true
	}
	now := st.Now()
	if ms > math.MaxInt64-int64(now)/int64(time.Millisecond) {
		return 0, false
	}
	return now.Add(time.Duration(limit.SatMul(ms, int64(time.Millisecond)))), true
}

func parseExpireOptions(args [][]byte) (ExpireCondition, resp.Error) {
	var cond ExpireCondition
	for _, a := range args {
		switch {
		case parse.IsWord(a, "NX"):
			cond |= ExpireIfNone
		case parse.IsWord(a, "XX"):
			cond |= ExpireIfAny
		case parse.IsWord(a, "GT"):
			cond |= ExpireIfLater
		case parse.IsWord(a, "LT"):
			cond |= ExpireIfEarlier
		default:
			return 0, resp.Error("ERR Unsupported option " + string(echo(a, maxEcho)))
		}
	}
	switch {
	case cond&ExpireIfNone != 0 && cond != ExpireIfNone:
		return 0, "ERR NX and XX, GT or LT options at the same time are not compatible"
	case cond&ExpireIfLater != 0 && cond&ExpireIfEarlier != 0:
		return 0, "ERR GT and LT options at the same time are not compatible"
	}
	return cond, ""
}

// ttl is TTL and PTTL. PTTL rounds up: a key lives until its very nanosecond. TTL
// rounds those milliseconds to the nearest second, as Redis does.
func ttl(c *Ctx, unit time.Duration) {
	at, has, found := c.Store.Expiry(c.Client.selected(), c.Args[1])
	if !c.noExpiry(has, found) {
		return
	}
	ms := limit.MillisUp(at.Sub(c.Store.Now()))
	if unit == time.Second {
		ms = (ms + 500) / 1000
	}
	c.W.Int(ms)
}

// expireTime is EXPIRETIME and PEXPIRETIME, in civil time.
func expireTime(c *Ctx, unit time.Duration) {
	at, has, found := c.Store.Expiry(c.Client.selected(), c.Args[1])
	if !c.noExpiry(has, found) {
		return
	}
	ms := limit.MillisUp(time.Duration(c.Store.Civil(at)))
	if unit == time.Second {
		ms = (ms + 500) / 1000
	}
	c.W.Int(ms)
}

// noExpiry replies -2 or -1 for a key without an expiry to speak of; it reports
// whether there is one.
func (c *Ctx) noExpiry(has, found bool) bool {
	c.noteLookup(found)
	switch {
	case !found:
		c.W.Int(-2)
	case !has:
		c.W.Int(-1)
	}
	return found && has
}

func persist(c *Ctx) {
	if c.Store.Persist(c.Client.selected(), c.Args[1]) {
		c.W.Int(1)
	} else {
		c.W.Int(0)
	}
}
