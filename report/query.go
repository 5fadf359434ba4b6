package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Query holds the parameters of one report. Their values have been checked.
type Query struct {
	Report  string
	Span    int64 // length of the history in seconds
	ByCalls bool
	N       int
	Group   string
	Since   int64
	DB      int
	Key     string
	// Fleet says that the report is about all servers of the store. Known says that it must not wait for them, and uses
	// only figures that are known already.
	Fleet, Known bool
}

// These are defaults and bounds of a query.
const (
	defaultSpan = 3600
	defaultN    = 20
	maxKey      = 16 << 10
)

// parameters returns the names of the parameters of a report. ok is false if there is no such
// report.
func parameters(report string) (names []string, ok bool) {
	names, ok = map[string][]string{
		"overview": {"fleet"}, "groups": {"fleet"}, "history": {"span", "fleet"}, "keys": {"by", "n", "group", "fleet"}, "changes": {"since"},
		"key": {"db", "key"}, "clients": {"n"}, "slowlog": {"n"},
	}[report]
	return names, ok
}

// ParseQuery parses and checks the parameters of the report called report. given maps their names
// in lower case to their values. databases is the number of databases. The error says which
// parameter is unknown, invalid or missing.
func ParseQuery(report string, given map[string][]string, databases int) (q Query, err error) {
	names, ok := parameters(report)
	if !ok {
		return q, fmt.Errorf("there is no report %q", shorten(report))
	}
	q = Query{Report: report, Span: defaultSpan, N: defaultN}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		values := given[name]
		switch {
		case !slices.Contains(names, name):
			return q, fmt.Errorf("%s has no parameter %q", report, shorten(name))
		case len(values) != 1:
			return q, fmt.Errorf("parameter %q is given more than once", name)
		}
		if err := q.set(name, values[0], databases); err != nil {
			return q, err
		}
	}
	if _, has := given["key"]; report == "key" && !has {
		return q, fmt.Errorf("parameter %q is missing", "key")
	}
	return q, nil
}

// set parses value, the value of the parameter called name, and stores it in q. A value that is
// invalid or longer than maxKey bytes is an error.
func (q *Query) set(name, value string, databases int) (err error) {
	var n int64
	switch name {
	case "span":
		q.Span, err = parseSpan(value)
	case "by":
		if q.ByCalls = value == "calls"; value != "calls" && value != "denied" {
			err = fmt.Errorf(`by is "denied" or "calls"`)
		}
	case "n":
		n, err = parseBetween(name, value, 1, keysAtMost)
		q.N = int(n)
	case "since":
		q.Since, err = parseBetween(name, value, 0, 1<<62)
	case "db":
		n, err = parseBetween(name, value, 0, int64(databases-1))
		q.DB = int(n)
	case "group":
		q.Group = value
	case "fleet":
		if q.Fleet, q.Known = true, value == "known"; value != "all" && value != "known" {
			err = fmt.Errorf(`fleet is "all" or "known"`)
		}
	case "key":
		q.Key = value
	}
	if len(value) > maxKey {
		return fmt.Errorf("parameter %q is longer than %d bytes", name, maxKey)
	}
	return err
}

func parseBetween(name, value string, least, most int64) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s is an integer from %d to %d", name, least, most)
	}
	return n, nil
}

// parseSpan parses a number of seconds, or one with a unit: 90, 5m, 6h, 1d. The result is in
// seconds. A span below 1 second or above [MaxSpan] is an error.
func parseSpan(value string) (int64, error) {
	unit := int64(1)
	for suffix, seconds := range map[string]int64{"s": 1, "m": 60, "h": 3600, "d": 24 * 3600} {
		if rest, has := strings.CutSuffix(value, suffix); has {
			value, unit = rest, seconds
			break
		}
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 1 || n > MaxSpan || n*unit > MaxSpan {
		return 0, fmt.Errorf("span is from 1s to 24h")
	}
	return n * unit, nil
}

// shorten returns the first 64 bytes of s, for a quotation in an error.
func shorten(s string) string { return s[:min(len(s), 64)] }
