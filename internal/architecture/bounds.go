package architecture

import "fmt"

// mostFiles and mostLines are the maximum numbers of production files of a package and of their
// lines. A larger package may have two concerns.
const (
	mostFiles = 35
	mostLines = 4500
)

// larger has, for each package that exceeds a bound and still has one concern, the reason for that.
var larger = map[string]string{
	"command":     "the entry, the call, its worker, its client and the server refer to each other: Go declares such types together",
	"keyspace":    "shards, their locks, and the waits, watches and expiries under these locks change together",
	"persistence": "manifest, base and log are read, checked and recovered together: each depends on the offsets of the others",
	"remote":      "a call passes from its queue over the decision to the write, and what is in doubt goes the way back",
	"replication": "a node is primary and replica in turn: both roles share history, offsets and chunks",
	"server":      "the assembly connects each part of the program with its options and the other parts: each file does so for one part",
	"session":     "feeding a session, its waits and its state end together: each depends on the progress of the others",
}

// CheckBounds returns a violation for each package that exceeds a bound without a reason, and for
// each reason that is not needed. reasons has the reasons by package.
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
				Why: "a large package often has two concerns: give one a package of its own, or say in bounds.go why it has only one",
			})
		}
	}
	for name := range reasons {
		if !needed[name] {
			found = append(found, Violation{Where: name, What: "a reason in bounds.go that is not needed", Why: "only a package that exceeds a bound has a reason"})
		}
	}
	return found
}

// CheckOurBounds does what [CheckBounds] does, with the reasons that this module gives.
func CheckOurBounds(measures []Measure) []Violation { return CheckBounds(measures, larger) }
