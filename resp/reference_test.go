package resp_test

import (
	"math/big"
	"regexp"
	"strings"

	"github.com/cellserver/cellserver/resp"
)

// The reference parser defines again, slowly and over the whole stream, how Redis 7 splits it. It
// has no state and no fast path, and shares no code with the guard.

// reference returns the commands of a stream and the error that ends it.
func reference(lim resp.Limits, stream string) (commands [][]string, err resp.Error) {
	for stream != "" {
		var args []string
		var rest string
		var complete bool
		if stream[0] == '*' {
			args, rest, complete, err = referenceFrame(lim, stream)
		} else {
			args, rest, complete, err = referenceInline(lim, stream)
		}
		if err != "" || !complete {
			return commands, err
		}
		if len(args) > 0 {
			commands = append(commands, args)
		}
		stream = rest
	}
	return commands, ""
}

func referenceFrame(lim resp.Limits, stream string) (args []string, rest string, complete bool, err resp.Error) {
	line, rest, complete, err := referenceLine(lim, stream, stream, resp.ErrMbulkCountBig)
	if !complete {
		return nil, "", false, err
	}
	count := referenceNumber(line[1:])
	switch {
	case count == nil || count.Cmp(big.NewInt(int64(lim.MaxArgs))) > 0:
		return nil, "", false, resp.ErrMultibulkLength
	case lim.PreAuthArgs > 0 && count.Cmp(big.NewInt(int64(lim.PreAuthArgs))) > 0:
		return nil, "", false, resp.ErrUnauthMultibulk
	}
	for i := int64(0); i < count.Int64(); i++ {
		line, rest, complete, err = referenceLine(lim, stream, rest, resp.ErrBulkCountBig)
		if !complete {
			return nil, "", false, err
		}
		if !strings.HasPrefix(line, "$") {
			got := "\r" // an empty line begins with its CR
			if line != "" {
				got = line[:1]
			}
			return nil, "", false, resp.Error("ERR Protocol error: expected '$', got '" + got + "'")
		}
		size := referenceNumber(line[1:])
		used := int64(len(stream) - len(rest))
		switch {
		case size == nil || size.Sign() < 0 || size.Cmp(big.NewInt(int64(lim.MaxBulk))) > 0:
			return nil, "", false, resp.ErrBulkLength
		case lim.PreAuthBulk > 0 && size.Cmp(big.NewInt(int64(lim.PreAuthBulk))) > 0:
			return nil, "", false, resp.ErrUnauthBulk
		case used+size.Int64()+2 > int64(lim.MaxCommand):
			return nil, "", false, resp.ErrCommandTooBig
		}
		end := int(size.Int64())
		if len(rest) < end+2 {
			return nil, "", false, ""
		}
		args = append(args, rest[:end])
		rest = rest[end+2:]
	}
	return args, rest, true, ""
}

// referenceLine splits off the first line of rest, a suffix of the frame, which ends with a CR and
// one more byte. The CR must be within the limits of the line and of the command, and no NUL may
// precede it.
func referenceLine(lim resp.Limits, frame, rest string, tooBig resp.Error) (line, after string, complete bool, err resp.Error) {
	cr := strings.IndexAny(rest, "\r\x00")
	limit, fault := lim.MaxInline, tooBig
	if left := lim.MaxCommand - (len(frame) - len(rest)); left < limit {
		limit, fault = left, resp.ErrCommandTooBig
	}
	switch {
	case cr >= 0 && cr <= limit && rest[cr] == '\r':
		if len(rest) < cr+2 {
			return "", "", false, ""
		}
		return rest[:cr], rest[cr+2:], true, ""
	case len(rest) > limit:
		return "", "", false, fault
	}
	return "", "", false, ""
}

var referenceNumeral = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)

// referenceNumber returns the integer in a count or length, nil if it is not one.
func referenceNumber(text string) *big.Int {
	if !referenceNumeral.MatchString(text) {
		return nil
	}
	n, ok := new(big.Int).SetString(text, 10)
	if !ok || !n.IsInt64() {
		return nil
	}
	return n
}

func referenceInline(lim resp.Limits, stream string) (args []string, rest string, complete bool, err resp.Error) {
	lf := strings.IndexAny(stream, "\n\x00")
	if lf < 0 || lf > lim.MaxInline || stream[lf] == 0 {
		if len(stream) > lim.MaxInline {
			return nil, "", false, resp.ErrInlineTooBig
		}
		return nil, "", false, ""
	}
	args, balanced := referenceWords(strings.TrimSuffix(stream[:lf], "\r"))
	if !balanced {
		return nil, "", false, resp.ErrUnbalanced
	}
	return args, stream[lf+1:], true, ""
}

const blanks = " \t\n\v\f\r"

var (
	referenceQuoted = regexp.MustCompile(`(?s)^"((?:[^"\\]|\\.)*)"`)
	referenceEscape = regexp.MustCompile(`(?s)\\x[0-9a-fA-F]{2}|\\.`)
)

// referenceWords splits a line into words as sdssplitargs does. The patterns work on runes, so
// every byte is first converted to the rune with the same number.
func referenceWords(line string) (words []string, balanced bool) {
	line = latin1(line)
	for {
		line = strings.TrimLeft(line, blanks)
		if line == "" {
			return words, true
		}
		end := strings.IndexAny(line+" ", " \t\n\r\"'")
		word := line[:end]
		line = line[end:]
		if line != "" && (line[0] == '"' || line[0] == '\'') {
			quoted, rest, closed := referenceQuotes(line)
			if !closed || rest != "" && !strings.Contains(blanks, rest[:1]) {
				return nil, false
			}
			word, line = word+quoted, rest
		}
		words = append(words, bytesOf(word))
	}
}

// referenceQuotes splits off the quoted part at the start of line.
func referenceQuotes(line string) (quoted, rest string, closed bool) {
	if line[0] == '"' {
		m := referenceQuoted.FindStringSubmatch(line)
		if m == nil {
			return "", "", false
		}
		return referenceEscape.ReplaceAllStringFunc(m[1], referenceUnescape), line[len(m[0]):], true
	}
	const escapedQuote = "\u0100" // no byte becomes this rune
	quoted, rest, closed = strings.Cut(strings.ReplaceAll(line[1:], `\'`, escapedQuote), "'")
	return strings.ReplaceAll(quoted, escapedQuote, "'"), strings.ReplaceAll(rest, escapedQuote, `\'`), closed
}

func referenceUnescape(escape string) string {
	if len(escape) == 4 && escape[1] == 'x' {
		n, _ := new(big.Int).SetString(escape[2:], 16)
		return string(rune(n.Int64()))
	}
	if plain, special := map[string]string{`\n`: "\n", `\r`: "\r", `\t`: "\t", `\b`: "\b", `\a`: "\a"}[escape]; special {
		return plain
	}
	return escape[1:]
}

// latin1 converts every byte to the rune with the same number. bytesOf is the inverse.
func latin1(s string) string {
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

func bytesOf(s string) string {
	var b []byte
	for _, r := range s {
		b = append(b, byte(r))
	}
	return string(b)
}
