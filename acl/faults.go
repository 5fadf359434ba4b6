package acl

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxFaults is the maximum number of faults of one file that are reported.
const maxFaults = 100

// faults has the first faults of a file, up to maxFaults, and the number of all faults.
type faults struct {
	first []error
	count int
}

func (f *faults) add(err error) {
	if f.count++; f.count <= maxFaults {
		f.first = append(f.first, err)
	}
}

// join returns the faults as one error with a line for each, and a line with the number of those
// that are not reported. It returns nil if there are no faults.
func (f *faults) join() error {
	if f.count > maxFaults {
		return errors.Join(append(f.first, moreFaults(f.count-maxFaults))...)
	}
	return errors.Join(f.first...)
}

// moreFaults is an error whose value is the number of faults that are not reported.
type moreFaults int

// Error implements the error interface.
func (m moreFaults) Error() string {
	if m == 1 {
		return "1 more fault"
	}
	return fmt.Sprintf("%d more faults", int(m))
}

// FaultLine returns the text of err, which has one fault of a file or of the configuration on each
// line, as one line of about most bytes. The line has as many faults as fit, separated by
// separator, and then the number of the others. It always contains the first fault, which is cut
// off if it is too long.
func FaultLine(err error, separator string, most int) string {
	var more moreFaults
	errors.As(err, &more)
	lines := strings.Split(err.Error(), "\n")
	if more > 0 { // the faults of another file may follow, so this line ends
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

// printable returns text with each control character replaced by a space.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}

// maxShown is the maximum number of bytes of a word that a fault repeats.
const maxShown = 128

// shown returns up to maxShown bytes of word, a word of a file, with control characters replaced by
// spaces. A fault repeats the word in this form.
func shown(word string) string { return printable(word[:min(len(word), maxShown)]) }

// speaksOfCommand reports whether an error may repeat rule. It may if rule contains only characters
// of the names of commands and categories, so that it is no password. The first character of rule,
// which must not be empty, is not checked.
func speaksOfCommand(rule string) bool {
	return strings.IndexFunc(rule[1:], func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("@|.-_", r))
	}) < 0
}
