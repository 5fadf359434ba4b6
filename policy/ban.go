package policy

import (
	"fmt"
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/ban"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

const (
	// defaultGrowth is the factor of a BAN without FACTOR.
	defaultGrowth = 2 * ban.Whole
	// defaultMaxBan is the maximum length of a ban if BAN has no MAX. If the first ban is longer,
	// that is the maximum.
	defaultMaxBan = 24 * time.Hour
)

const (
	banUsage = "BAN refusals window block [FACTOR factor] [MAX time]"

	errBanLast  resp.Error = "ERR BAN stands last, behind the clauses"
	errBanAlone resp.Error = "ERR BAN needs a clause before it, whose denials it counts"
	errBanNone  resp.Error = "ERR BAN is not for NONE, which denies no call"
)

// parseBan parses words, which begin with BAN:
//
//	BAN refusals window block [FACTOR factor] [MAX time]
//
// millis says that times are in milliseconds; they may have a suffix, as in 10m. text is the clause with numbers in
// that unit. The error is "" on success.
func parseBan(words [][]byte, millis bool) (c *ban.Call, text string, err resp.Error) {
	if c, text, err = readBan(words, unit(millis)); err != "" {
		return nil, "", resp.WithUsage(err, banUsage)
	}
	return c, text, ""
}

// readBan does what parseBan does, for times in units of u. Its errors do not show the syntax.
func readBan(words [][]byte, u time.Duration) (*ban.Call, string, resp.Error) {
	if len(words) < 4 {
		return nil, "", resp.SyntaxNear(words[0])
	}
	c := &ban.Call{Factor: defaultGrowth}
	if err := arg.AtLeast(words[1], "refusals", 1, &c.Refusals); err != "" {
		return nil, "", err
	}
	if c.Refusals > ban.MaxRefusals {
		return nil, "", resp.Argument(resp.ErrNotPositive, "refusals", words[1], fmt.Sprint("at most ", ban.MaxRefusals))
	}
	var window, block, most int64
	var err resp.Error
	if c.Window, window, err = banTime(words[2], "window", u); err != "" {
		return nil, "", err
	}
	if c.Block, block, err = banTime(words[3], "block", u); err != "" {
		return nil, "", err
	}
	text, grows := fmt.Sprint("BAN ", c.Refusals, " ", window, " ", block), false
	for rest := words[4:]; len(rest) > 0; rest = rest[2:] {
		word := rest[0]
		switch {
		case len(rest) > 1 && arg.IsWord(word, "FACTOR") && !grows:
			n, err := ParseFactor(rest[1])
			if err != nil || n < ban.Whole {
				return nil, "", resp.Argument(resp.ErrNotPositive, "FACTOR", rest[1], "a number from 1 to 1000 with at most three decimals")
			}
			grows, c.Factor, text = true, n, text+" FACTOR "+string(AppendFactor(nil, n))
		case len(rest) > 1 && arg.IsWord(word, "MAX") && c.Max == 0:
			if c.Max, most, err = banTime(rest[1], "MAX", u); err != "" {
				return nil, "", err
			}
			if c.Max < c.Block {
				return nil, "", resp.Argument(resp.ErrNotPositive, "MAX", rest[1], "at least as long as the first ban")
			}
			text += fmt.Sprint(" MAX ", most)
		default:
			return nil, "", resp.SyntaxNear(word)
		}
	}
	if c.Max == 0 {
		c.Max = max(defaultMaxBan, c.Block)
	}
	if err := c.Validate(); err != nil {
		return nil, "", resp.Error("ERR " + err.Error())
	}
	return c, text, ""
}

// banTime parses text, the argument called name, as a time in units of u or with a suffix. n is the number of units.
func banTime(text []byte, name string, u time.Duration) (d time.Duration, n int64, err resp.Error) {
	n, ok := arg.Duration(text, u)
	if !ok {
		return 0, 0, resp.Argument(resp.ErrNotInteger, name, text, "a time such as 60, 60s, 10m, 12h or 1d")
	}
	if d = time.Duration(limit.SatMul(n, int64(u))); d > ban.MaxTime {
		return 0, 0, resp.Argument(resp.ErrNotPositive, name, text, "at most 3660 days")
	}
	return d, n, ""
}
