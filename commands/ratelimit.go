package commands

import "github.com/cellserver/cellserver/resp"

func ratelimitCommands() []*Command {
	return []*Command{
		{
			Name: "rl.info", Arity: 2, Flags: FlagReadonly | FlagFast, Keys: oneKey,
			Categories: CatRateLimit, Group: "ratelimit",
			Summary: "Shows what is stored under a limiter's key.", Syntax: "key",
			Since: "1.0.0", Complexity: "O(1); O(N) of what a LOG, BUCKETS or lease set holds",
			Reply: "a map of fields, or null", Run: rlInfo,
		},
		{
			Name: "rl.top", Arity: -1, Flags: FlagAdmin, Categories: CatRateLimit, Group: "ratelimit",
			Summary: "Shows the keys that are denied, or called, most at present.", Syntax: "[DENIED | CALLS] [COUNT count]",
			Since: "1.0.0", Complexity: "O(1)", Reply: "a map of keys and estimated counts, the largest first", Run: rlTop,
		},
	}
}

// rlInfo gathers the fields first: their number stands before them.
func rlInfo(c *Ctx) {
	fields := resp.Writer{Proto: c.S.proto}
	n := 0
	found := c.Store.Describe(c.S.selected(), c.Args[1], func(field, text string, number int64, isText bool) {
		n++
		fields.BulkString(field)
		if isText {
			fields.BulkString(text)
		} else {
			fields.Int(number)
		}
	})
	if !found {
		c.W.Null()
		return
	}
	c.W.Map(n)
	c.W.Raw(fields.Buf)
}

const (
	topDefault = 10
	topMost    = 1000
)

func rlTop(c *Ctx) {
	table := func(l *Lane) *topTable { return &l.denied }
	n := int64(topDefault)
	args := c.Args[1:]
	if len(args) > 0 && (isWord(args[0], "DENIED") || isWord(args[0], "CALLS")) {
		if isWord(args[0], "CALLS") {
			table = func(l *Lane) *topTable { return &l.calls }
		}
		args = args[1:]
	}
	if len(args) > 0 {
		if len(args) != 2 || !isWord(args[0], "COUNT") {
			c.Fail(resp.ErrSyntax)
			return
		}
		if err := parsePositive(args[1], &n); err != "" {
			c.Fail(err)
			return
		}
	}
	c.flushTop() // what this very batch has noted belongs to the picture
	top := c.engine.topKeys(table, int(min(n, topMost)))
	c.W.Map(len(top))
	for _, k := range top {
		c.W.BulkString(k.key)
		c.W.Int(k.count)
	}
}
