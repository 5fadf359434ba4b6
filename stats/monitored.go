package stats

import (
	"strconv"
	"strings"
)

const (
	// maxMonitoredLine is the maximum number of bytes of arguments that MONITOR shows for one
	// command, without quotes. maxMonitored is the maximum number of bytes that wait in a worker,
	// for the commands of one transaction or script.
	maxMonitoredLine = 64 << 10
	maxMonitored     = 8 << 20
	// keptMonitored is the maximum size, in bytes, of the buffer for lines that a worker keeps.
	keptMonitored = 64 << 10
)

// Lines has the recorded commands of a worker as lines of MONITOR.
type Lines struct {
	text   []byte
	missed int // number of commands for which there was no room
}

// Source describes a call for MONITOR, without its arguments.
type Source struct {
	At   int64 // civil time of the call in Unix microseconds
	DB   int
	Addr string // address of the client, or "lua" for a command that a script calls
}

// Size returns the total length of the lines in bytes.
func (l *Lines) Size() int { return len(l.text) }

// Cut removes all lines after the first size bytes.
func (l *Lines) Cut(size int) { l.text = l.text[:min(size, len(l.text))] }

// Add adds the line of a command. words is the result of [Words] for its arguments. If there is no
// room for the line, Add only counts the command as missed.
func (l *Lines) Add(from Source, words []byte) {
	if len(l.text)+len(words) > maxMonitored {
		l.missed++
		return
	}
	l.text = from.line(l.text, words)
}

// Take returns the lines and removes them. They are valid until the next Add. If there was no room
// for some commands, the last line contains their number; at is the time of that line, in Unix
// microseconds of the civil clock.
func (l *Lines) Take(at int64) []byte {
	text := l.text
	if l.missed > 0 {
		text = Source{At: at, Addr: "monitor"}.line(text, []byte(" ... ("+strconv.Itoa(l.missed)+" more commands)"))
		l.missed = 0
	}
	if l.text = text[:0]; cap(text) > keptMonitored {
		l.text = nil
	}
	return text
}

// line appends the MONITOR line of a call to b. words are its arguments, as [Words] returns them.
func (from Source) line(b, words []byte) []byte {
	b = append(b, '+')
	b = strconv.AppendInt(b, from.At/1e6, 10)
	b = append(b, '.')
	fraction := strconv.AppendInt(nil, 1e6+from.At%1e6, 10)
	b = append(append(b, fraction[1:]...), " ["...)
	b = strconv.AppendInt(b, int64(from.DB), 10)
	b = append(append(append(b, ' '), from.Addr...), ']')
	return append(append(b, words...), '\r', '\n')
}

// Words returns the arguments of a call in the form in which MONITOR shows them: quoted, with a
// space before each, and cut off if they are too long.
func Words(args [][]byte) (line []byte) {
	for i, a := range args {
		room := maxMonitoredLine - len(line)
		if room <= 0 {
			return append(append(append(line, " ... ("...), strconv.Itoa(len(args)-i)...), " more arguments)"...)
		}
		line = append(line, ' ')
		if len(a) <= room {
			line = appendQuoted(line, a)
			continue
		}
		line = appendQuoted(line, a[:room])
		line = append(append(append(line, "... ("...), strconv.Itoa(len(a)-room)...), " more bytes)"...)
	}
	return line
}

// appendQuoted appends b to line in quotes, with escapes for the bytes that are not printable
// ASCII.
func appendQuoted(line, b []byte) []byte {
	const hex = "0123456789abcdef"
	line = append(line, '"')
	for _, c := range b {
		switch escaped := strings.IndexByte("\n\r\t\a\b", c); {
		case c == '\\' || c == '"':
			line = append(line, '\\', c)
		case escaped >= 0:
			line = append(line, '\\', "nrtab"[escaped])
		case c >= ' ' && c <= '~':
			line = append(line, c)
		default:
			line = append(line, '\\', 'x', hex[c>>4], hex[c&15])
		}
	}
	return append(line, '"')
}
