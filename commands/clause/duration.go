package clause

import (
	"slices"
	"strconv"
	"time"

	"github.com/cellserver/cellserver/commands/parse"
	"github.com/cellserver/cellserver/resp"
)

// InUnit returns the words of a clause of a policy with its duration as a number of unit: it may have
// a unit of its own there.
func InUnit(words [][]byte, unit time.Duration) ([][]byte, resp.Error) {
	at, name, kind := 3, "period", Word(words[0])
	switch kind {
	case Window:
		at, name = 2, "window"
	case Lease:
		at, name = 2, "lease"
	}
	if at >= len(words) || len(words[at]) > 0 && isDigit(words[at][len(words[at])-1]) {
		return words, "" // too few words, or a number: both are for the clause to judge
	}
	n, ok := parse.Duration(words[at], unit)
	if !ok {
		must := mustBeDuration
		if unit == time.Second {
			must += ", in whole seconds unless the policy has MS"
		}
		err := resp.Argument(resp.ErrNotInteger, name, words[at], must)
		return nil, resp.WithUsage(err, Usage(kind, true))
	}
	words = slices.Clone(words)
	words[at] = strconv.AppendInt(nil, n, 10)
	return words, ""
}

const mustBeDuration = "a duration such as 60, 60s, 1m, 12h or 1d"

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
