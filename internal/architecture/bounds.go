package architecture

import "fmt"

// A package with more production files or lines than these is a smell: it may have two concerns.
const (
	mostFiles = 35
	mostLines = 4500
)

// larger has the packages beyond a bound that are right as they are, and the reason for each.
var larger = map[string]string{
	"keyspace":    "shards, their locks, and what waits, watches and expires under them change together",
	"persistence": "manifest, base and log are read, checked and recovered together: each says how far the others count",
	"replication": "a node is primary and replica in turn: both sides share history, offsets and chunks",
	"server":      "assembly knows every part, and dividing it would only hide which",
	"session":     "feeding a session, its waits, and what it keeps end together: each asks how far the others are",
	"transport":   "event loops and goroutines keep the same promises, with files for what only some systems have",
}

// CheckBounds returns the packages that are beyond a bound without a reason, and the reasons that
// no package needs. reasons are by package.
func CheckBounds(measures []Measure, reasons map[string]string) (found []Violation) {
	needed := map[string]bool{}
	for _, m := range measures {
		what := ""
		switch {
		case m.Files > mostFiles:
			what = fmt.Sprintf("%d files, more than %d", m.Files, mostFiles)
		case m.Lines > mostLines:
			what = fmt.Sprintf("%d lines, more than %d", m.Lines, mostLines)
		default:
			continue
		}
		needed[m.Package] = true
		if reasons[m.Package] == "" {
			found = append(found, Violation{
				Where: m.Package, What: what,
				Why: "a large package often has two concerns: give one a package of its own, or say in bounds.go why this one has not",
			})
		}
	}
	for name := range reasons {
		if !needed[name] {
			found = append(found, Violation{Where: name, What: "a reason in bounds.go that it does not need", Why: "a reason stands only for a package beyond a bound"})
		}
	}
	return found
}

// CheckOurBounds is CheckBounds with the reasons of this module.
func CheckOurBounds(measures []Measure) []Violation { return CheckBounds(measures, larger) }
