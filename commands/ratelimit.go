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
			Summary: "Shows the keys that are denied, or called, most at present.", Syntax: "[DENIED | CALLS] [COUNT count] [DB index] [WITHDETAILS]",
			Since: "1.0.0", Complexity: "O(1)", Run: rlTop,
			Reply: "a map of keys and estimated counts, the largest first; with WITHDETAILS an array of maps: db, key, count, per-second, share",
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
