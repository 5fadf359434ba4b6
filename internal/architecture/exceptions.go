package architecture

import (
	_ "embed" // for the exceptions
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ExceptionsFile is where the exceptions are, relative to the module.
const ExceptionsFile = "internal/architecture/exceptions.txt"

//go:embed exceptions.txt
var exceptionsText string

// Exceptions are the figures beyond their bound, by bound and name: "lines commands",
// "fields server.Server". Whoever makes a figure smaller lowers its exception, so
// that it stays smaller.
type Exceptions map[string]int

// OurExceptions returns those of this module.
func OurExceptions() (Exceptions, error) { return ReadExceptions(exceptionsText) }

// ReadExceptions reads exceptions, one on a line. Of two lines about one figure, as
// a merge may leave them, the lower number counts.
func ReadExceptions(text string) (Exceptions, error) {
	e := Exceptions{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if len(words) != 3 || bounds[words[0]] == (bound{}) {
			return nil, fmt.Errorf("%s: %q is no exception", ExceptionsFile, line)
		}
		n, err := strconv.Atoi(words[2])
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", ExceptionsFile, line, err)
		}
		key := words[0] + " " + words[1]
		if old, twice := e[key]; twice {
			n = min(n, old)
		}
		e[key] = n
	}
	return e, nil
}

// String returns the text that [ReadExceptions] reads.
func (e Exceptions) String() string {
	var b strings.Builder
	b.WriteString("# What is beyond the bounds in bounds.go, and how far. Nothing may grow.\n")
	b.WriteString("# `make architecture` lowers the numbers to what is needed.\n")
	for _, key := range slices.Sorted(maps.Keys(e)) {
		fmt.Fprintln(&b, key, e[key])
	}
	return b.String()
}

// CheckBounds returns what is beyond its bound, and the exceptions that are larger
// than they have to be.
func CheckBounds(measures []Measure, e Exceptions) []Violation {
	var found []Violation
	for _, m := range measures {
		for _, f := range m.figures() {
			b := bounds[f.bound]
			if f.n <= max(b.most, e[f.key()]) {
				continue
			}
			what := fmt.Sprintf("%s of %s: %d, at most %d", f.bound, f.name, f.n, max(b.most, e[f.key()]))
			if len(f.counted) > 0 {
				var lines strings.Builder
				for _, r := range f.counted {
					lines.WriteString("\n\t" + r.String())
				}
				what += lines.String() + "\n"
			}
			found = append(found, Violation{Where: f.where, What: what, Why: b.why})
		}
	}
	return append(found, e.tooLarge(measures)...)
}

// Lowered returns the exceptions without those that nothing needs any more, and the
// others as low as they can be.
func (e Exceptions) Lowered(measures []Measure) Exceptions {
	lowered := Exceptions{}
	for _, m := range measures {
		for _, f := range m.figures() {
			if n := min(f.needs(), e[f.key()]); n > 0 {
				lowered[f.key()] = n
			}
		}
	}
	return lowered
}

// tooLarge returns what Lowered would change.
func (e Exceptions) tooLarge(measures []Measure) (found []Violation) {
	lowered := e.Lowered(measures)
	for _, key := range slices.Sorted(maps.Keys(e)) {
		if lowered[key] == e[key] {
			continue
		}
		what := fmt.Sprintf("%s: %d, but %d would do", key, e[key], lowered[key])
		if lowered[key] == 0 {
			what = fmt.Sprintf("%s: %d, but it needs no exception", key, e[key])
		}
		found = append(found, Violation{Where: ExceptionsFile, What: what, Why: loweringWhy})
	}
	return found
}

const loweringWhy = "exceptions may only become fewer and smaller (make architecture)"
