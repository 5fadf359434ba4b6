package strict

import (
	"fmt"
	"slices"
	"strings"
)

// MaxFaults is the maximum number of faults that are collected in a text.
const MaxFaults = 100

// Fault is one error in a text.
type Fault struct {
	// File is the name of the text.
	File string
	// Line is the line of the fault, from 1.
	Line int
	// Text describes the fault, without file and line.
	Text string
}

// Error returns "file:line: text".
func (f Fault) Error() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text) }

// Faults are the faults of a text. Faults beyond [MaxFaults] are omitted, and the last one says so.
type Faults []Fault

// Error returns one line for each fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].Error()
	}
	return strings.Join(lines, "\n")
}

// Sorted sorts the faults by line in place, and returns them. Those of one line stay in their order.
func (f Faults) Sorted() Faults {
	slices.SortStableFunc(f, func(a, b Fault) int { return a.Line - b.Line })
	return f
}

// Err returns f as an error, or nil if there is no fault.
func (f Faults) Err() error {
	if len(f) == 0 {
		return nil
	}
	return f
}

// add appends fault. Instead of the fault with the number MaxFaults, it appends a fault that says
// that there are more. It ignores all faults after that.
func (f *Faults) add(fault Fault) {
	switch n := len(*f); {
	case n < MaxFaults-1:
		*f = append(*f, fault)
	case n == MaxFaults-1:
		fault.Text = "there are more faults, which are not shown"
		*f = append(*f, fault)
	}
}

// Reader collects the faults of one text.
type Reader struct {
	name   string
	faults Faults
}

// Faults returns the faults so far, in the order in which they were found.
func (r *Reader) Faults() Faults { return r.faults }

// Fault adds a fault at the given line. format is a format of package fmt for args.
func (r *Reader) Fault(line int, format string, args ...any) {
	r.faults.add(Fault{File: r.name, Line: line, Text: fmt.Sprintf(format, args...)})
}

// Clipped returns word in a form for the text of a fault: quoted, and shortened to 64 bytes.
func Clipped(word string) string {
	const most = 64
	if len(word) > most {
		word = word[:most] + "..."
	}
	return fmt.Sprintf("%q", word)
}
