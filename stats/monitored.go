package stats

import (
	"strconv"
	"strings"
)

const (
	// maxMonitoredLine bounds the bytes that MONITOR shows of one command. maxMonitored bounds the
	// bytes that wait in a worker: the commands of one transaction or script.
	maxMonitoredLine = 64 << 10
	maxMonitored     = 8 << 20
	// keptMonitored bounds the memory for them that a worker keeps.
	keptMonitored = 64 << 10
)

// Lines has the commands of a worker as MONITOR shows them.
type Lines struct {
	text   []byte
	missed int // commands without room
}

// Source describes a call for MONITOR, except its arguments.
type Source struct {
	At   int64 // civil time in Unix microseconds
	DB   int
	Addr string // of the client, or lua
}

// Size returns the length of the lines in bytes.
func (l *Lines) Size() int { return len(l.text) }

// Cut removes everything after size bytes.
func (l *Lines) Cut(size int) { l.text = l.text[:min(size, len(l.text))] }

// Add appends a command. words is a result of [Words].
func (l *Lines) Add(from Source, words []byte) {
	if len(l.text)+len(words) > maxMonitored {
		l.missed++
		return
	}
	l.text = from.line(l.text, words)
}

// Take returns the lines, which are valid until the next command. If there was no room for some
// commands, a last line at the time at has their number.
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

// line appends a line of MONITOR.
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

// Words returns the arguments of a call as MONITOR shows them.
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

// appendQuoted appends b in quotes.
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
