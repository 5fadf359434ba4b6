package clause

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/resp"
)

// InUnit returns words, a clause of a policy, with its duration as a number of units. In a policy
// the duration may have a suffix, as in 1m. InUnit does not change words. The error is "" on
// success.
func InUnit(words [][]byte, unit time.Duration) ([][]byte, resp.Error) {
	kind := Word(words[0])
	at, name := durationOf(kind)
	if at >= len(words) || kind == Window && calendar.ParseUnit(words[at]) != calendar.None || len(words[at]) > 0 && isDigit(words[at][len(words[at])-1]) {
		return words, "" // other texts are left to the parser of the clause: too few words, a unit of the calendar or a number
	}
	n, ok := arg.Duration(words[at], unit)
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

// WithUnit returns text, a clause of a policy, with the suffix "s" added to its duration, or "ms"
// if millis is set, as in "TB 10 10 1s". The duration must be a number in that unit. A clause with
// the unit of a calendar stays the same.
func WithUnit(text string, millis bool) string {
	words := strings.Split(text, " ")
	kind := Word([]byte(words[0]))
	if at, _ := durationOf(kind); at < len(words) && (kind != Window || calendar.ParseUnit([]byte(words[at])) == calendar.None) {
		unit := "s"
		if millis {
			unit = "ms"
		}
		words[at] += unit
	}
	return strings.Join(words, " ")
}

// durationOf returns the index of the duration among the words of a clause of the kind k, and the
// name of that argument.
func durationOf(k Kind) (at int, name string) {
	switch k {
	case Window:
		return 2, "window"
	case Lease:
		return 2, "lease"
	}
	return 3, "period"
}

const mustBeDuration = "a duration such as 60, 60s, 1m, 12h or 1d"

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
