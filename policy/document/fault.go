package document

import (
	"fmt"
	"strings"
)

// MaxFaults is how many faults are collected at most.
const MaxFaults = 100

// Fault is one thing that is wrong with a text.
type Fault struct {
	// File is the name that the text was read under.
	File string
	// Line is where the fault is, from 1.
	Line int
	// Text says what is wrong, without file and line.
	Text string
}

// Error is "file:line: text".
func (f Fault) Error() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text) }

// Faults are the faults of one text, at most [MaxFaults], in the order of their lines.
type Faults []Fault

// Error has one line for each fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].Error()
	}
	return strings.Join(lines, "\n")
}

// Err returns f as an error, or nil if there is no fault.
func (f Faults) Err() error {
	if len(f) == 0 {
		return nil
	}
	return f
}
