package acl

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxFaults is how many faults of a file are told.
const maxFaults = 100

// faults are the first faults of a file, and how many there are.
type faults struct {
	first []error
	count int
}

func (f *faults) add(err error) {
	if f.count++; f.count <= maxFaults {
		f.first = append(f.first, err)
	}
}

// join makes one error of them, nil of none.
func (f *faults) join() error {
	if f.count > maxFaults {
		return errors.Join(append(f.first, moreFaults(f.count-maxFaults))...)
	}
	return errors.Join(f.first...)
}

// moreFaults is how many faults there are beside those that are told.
type moreFaults int

// Error implements error.
func (m moreFaults) Error() string {
	if m == 1 {
		return "1 more fault"
	}
	return fmt.Sprintf("%d more faults", int(m))
}

// FaultLine returns the faults of files and configurations on one line of about most bytes:
// those that fit, each but the last followed by separator, and then how many more there are.
// The first is there in any case, cut if it is too long.
func FaultLine(err error, separator string, most int) string {
	var more moreFaults
	errors.As(err, &more)
	lines := strings.Split(err.Error(), "\n")
	if more > 0 { // the faults of another file may come behind
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

// printable returns text without what would end a line or move a cursor.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}

// maxShown is how much of a word of a file is repeated where it is wrong.
const maxShown = 128

// shown is a word of a file as a fault repeats it.
func shown(word string) string { return printable(word[:min(len(word), maxShown)]) }

// speaksOfCommand reports whether a rule may be repeated where it is wrong: it is about a
// command or a category, and has nothing else in it, such as a password.
func speaksOfCommand(rule string) bool {
	return strings.IndexFunc(rule[1:], func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("@|.-_", r))
	}) < 0
}
