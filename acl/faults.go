package acl

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxFaults bounds the faults of a file that are reported.
const maxFaults = 100

// faults has the first faults of a file, and the number of all.
type faults struct {
	first []error
	count int
}

func (f *faults) add(err error) {
	if f.count++; f.count <= maxFaults {
		f.first = append(f.first, err)
	}
}

// join returns the faults as one error, nil if there are none.
func (f *faults) join() error {
	if f.count > maxFaults {
		return errors.Join(append(f.first, moreFaults(f.count-maxFaults))...)
	}
	return errors.Join(f.first...)
}

// moreFaults is the number of faults that are not reported.
type moreFaults int

// Error implements the error interface.
func (m moreFaults) Error() string {
	if m == 1 {
		return "1 more fault"
	}
	return fmt.Sprintf("%d more faults", int(m))
}

// FaultLine returns the faults of files and configurations on one line of about most bytes: as many
// faults as fit, separated by separator, and then the number of the others. It always contains the
// first fault, which is cut if it is too long.
func FaultLine(err error, separator string, most int) string {
	var more moreFaults
	errors.As(err, &more)
	lines := strings.Split(err.Error(), "\n")
	if more > 0 { // faults of another file may follow
		lines = slices.DeleteFunc(lines, func(line string) bool { return line == more.Error() })
	}
	size := 0
	for n, line := range lines {
		if size += len(line) + len(separator); size > most && n > 0 {
			more += moreFaults(len(lines) - n)
			lines = lines[:n]
			break
		}
	}
	lines[0] = lines[0][:min(len(lines[0]), most)]
	if more > 0 {
		lines = append(lines, more.Error())
	}
	return printable(strings.Join(lines, separator))
}

// printable returns text with control characters replaced by spaces.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}

// maxShown bounds the bytes of a word that a fault repeats.
const maxShown = 128

// shown returns a word of a file as a fault repeats it.
func shown(word string) string { return printable(word[:min(len(word), maxShown)]) }

// speaksOfCommand reports whether an error may repeat a rule: the rule is about a command or a
// category, and contains nothing else, such as a password.
func speaksOfCommand(rule string) bool {
	return strings.IndexFunc(rule[1:], func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("@|.-_", r))
	}) < 0
}
