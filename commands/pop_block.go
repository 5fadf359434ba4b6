package commands

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/parse"
	"github.com/cellserver/cellserver/resp"
)

func blockingCommands() []*command.Command {
	entry := func(name string, arity int, f command.Flag, cats command.Category, keys command.KeySpec, syntax, summary, reply string, run func(*command.Call)) *command.Command {
		group := "list"
		if cats == command.CatSortedSet {
			group = "sorted-set"
		}
		return &command.Command{
			Name: name, Arity: arity, Flags: command.FlagWrite | f, Keys: keys, Categories: cats, Group: group, Summary: summary,
			Syntax: syntax, Since: "1.0.0", Complexity: "O(N log M) for N elements of M", Reply: reply, Run: run,
		}
	}
	const (
		blocks  = command.FlagBlocking
		numbers = command.FlagMovableKeys
		keyed   = "an array of key and element, or null"
		scored  = "an array of key, member and score, or null"
		arrayed = "an array of key and an array of elements, or null"
		popKeys = "key [key ...] timeout"
		ends    = "numkeys key [key ...] <LEFT | RIGHT> [COUNT count]"
		scores  = "numkeys key [key ...] <MIN | MAX> [COUNT count]"
	)
	butLast := command.KeySpec{First: 1, Last: -2, Step: 1}
	both := command.KeySpec{First: 1, Last: 2, Step: 1}
	return []*command.Command{
		entry("blpop", -3, blocks, command.CatList, butLast, popKeys, "Removes the first element of the first list that has one, and waits for it if none has.", keyed, blockingPop(false, true)),
		entry("brpop", -3, blocks, command.CatList, butLast, popKeys, "Removes the last element of the first list that has one, and waits for it if none has.", keyed, blockingPop(false, false)),
		entry("blmpop", -5, blocks|numbers|command.FlagLinear, command.CatList, numkeysAt(2), "timeout "+ends, "Removes elements from the first list that has some, and waits for them if none has.", arrayed, blockingMpop(false, "LEFT", "RIGHT")),
		entry("lmpop", -4, numbers|command.FlagLinear, command.CatList, numkeysAt(1), ends, "Removes elements from the first list that has some.", arrayed, mpop(false, "LEFT", "RIGHT")),
		entry("blmove", 6, blocks|command.FlagDenyOOM, command.CatList, both, "source destination <LEFT | RIGHT> <LEFT | RIGHT> timeout", "Moves an element from an end of a list to an end of another, and waits for it if there is none.", "the element, or null", blmove),
		entry("brpoplpush", 4, blocks|command.FlagDenyOOM, command.CatList, both, "source destination timeout", "Moves the last element of a list before all others of another, and waits for it if there is none.", "the element, or null", brpoplpush),
		entry("bzpopmin", -3, blocks|command.FlagFast, command.CatSortedSet, butLast, popKeys, "Removes the element of the lowest score of the first sorted set that has one, and waits for it if none has.", scored, blockingPop(true, true)),
		entry("bzpopmax", -3, blocks|command.FlagFast, command.CatSortedSet, butLast, popKeys, "Removes the element of the highest score of the first sorted set that has one, and waits for it if none has.", scored, blockingPop(true, false)),
		entry("bzmpop", -5, blocks|numbers|command.FlagLinear, command.CatSortedSet, numkeysAt(2), "timeout "+scores, "Removes elements from the first sorted set that has some, and waits for them if none has.", arrayed, blockingMpop(true, "MIN", "MAX")),
		entry("zmpop", -4, numbers|command.FlagLinear, command.CatSortedSet, numkeysAt(1), scores, "Removes elements from the first sorted set that has some.", arrayed, mpop(true, "MIN", "MAX")),
	}
}

const errTimeoutRange resp.Error = "ERR timeout is out of range"

// parsePopTimeout reads a timeout in seconds as Redis does, which rounds up to whole
// milliseconds, so that 0, and a negative number that makes 0 of them, is no bound. What
// int64 nanoseconds do not hold, 292 years, is none either.
func parsePopTimeout(b []byte) (time.Duration, resp.Error) {
	if d, err := parse.Timeout(b, time.Second); err == "" {
		return d, ""
	}
	f, ok := parseSeconds(string(b))
	switch {
	case !ok:
		return 0, resp.ErrTimeoutNotFloat
	case f <= -1.0/1000:
		return 0, resp.ErrTimeoutNegative
	case f >= math.MaxInt64/1000:
		return 0, errTimeoutRange
	case f <= 0 || f >= math.MaxInt64/float64(time.Second):
		return 0, ""
	}
	return time.Duration(math.Ceil(f * float64(time.Second))), ""
}

// parseSeconds reads a number as C does, which knows neither the underscores of Go nor its
// need of an exponent behind hexadecimal digits.
func parseSeconds(s string) (f float64, ok bool) {
	lower := strings.ToLower(s)
	if strings.Contains(lower, "_") {
		return 0, false
	}
	if strings.Contains(lower, "0x") && !strings.Contains(lower, "p") {
		lower += "p0"
	}
	f, err := strconv.ParseFloat(lower, 64)
	return f, !math.IsNaN(f) && (err == nil || math.IsInf(f, 0))
}

// blockingPop is the handler of BLPOP, BRPOP, BZPOPMIN and BZPOPMAX.
func blockingPop(sorted, front bool) func(*command.Call) {
	return func(c *command.Call) {
		last := len(c.Args) - 1
		popOrWait(c, popCall{sorted: sorted, front: front}, c.Args[1:last], c.Args[last])
	}
}

// blockingMpop is the handler of BLMPOP and BZMPOP.
func blockingMpop(sorted bool, front, back string) func(*command.Call) {
	return func(c *command.Call) {
		call, keys, err := parseMpop(c.Args[2:], front, back)
		if err != "" {
			c.Fail(err)
			return
		}
		call.sorted = sorted
		popOrWait(c, call, keys, c.Args[1])
	}
}

func blmove(c *command.Call) {
	m, err := parseMove(c.Args)
	if err != "" {
		c.Fail(err)
		return
	}
	popOrWait(c, popCall{move: m, to: c.Args[2]}, c.Args[1:2], c.Args[5])
}

func brpoplpush(c *command.Call) {
	popOrWait(c, popCall{move: listMove{toFront: true}, to: c.Args[2]}, c.Args[1:2], c.Args[3])
}
