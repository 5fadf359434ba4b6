package loadgen

import (
	"errors"
	"strconv"
	"strings"
)

var errQuotes = errors.New("a quote is not closed, or something follows a closing quote")

// splitWords splits a command line as redis-cli does. It returns an error if a quote is not closed,
// or if no blank follows the closing quote.
func splitWords(line string) ([]string, error) {
	var words []string
	for {
		line = strings.TrimLeft(line, " \t\r\n")
		if line == "" {
			return words, nil
		}
		word, rest, err := firstWord(line)
		if err != nil {
			return nil, err
		}
		words = append(words, word)
		line = rest
	}
}

// firstWord splits the first word off a line that does not begin with a blank.
func firstWord(line string) (word, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(line); {
		switch c := line[i]; c {
		case ' ', '\t', '\r', '\n':
			return b.String(), line[i:], nil
		case '"', '\'':
			n, err := quoted(&b, line[i+1:], c)
			if err != nil {
				return "", "", err
			}
			i += n + 1
			if i < len(line) && !strings.ContainsRune(" \t\r\n", rune(line[i])) {
				return "", "", errQuotes
			}
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String(), "", nil
}

// quoted appends the text up to the closing quote to b and returns the number of bytes read,
// including the quote.
func quoted(b *strings.Builder, s string, quote byte) (int, error) {
	for i := 0; i < len(s); {
		switch {
		case s[i] == quote:
			return i + 1, nil
		case s[i] == '\\' && i+1 < len(s) && (quote == '"' || s[i+1] == quote):
			i += escaped(b, s[i:])
		default:
			b.WriteByte(s[i])
			i++
		}
	}
	return 0, errQuotes
}

// escaped appends the meaning of the escape sequence at the beginning of s, and returns its length.
func escaped(b *strings.Builder, s string) int {
	if s[1] == 'x' && len(s) >= 4 {
		if n, err := strconv.ParseUint(s[2:4], 16, 8); err == nil {
			b.WriteByte(byte(n))
			return 4
		}
	}
	c := s[1]
	if i := strings.IndexByte("nrtba", c); i >= 0 {
		c = "\n\r\t\b\a"[i]
	}
	b.WriteByte(c)
	return 2
}
