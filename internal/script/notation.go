package script

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/cellserver/cellserver/resp"
)

// A pattern describes a reply, with its type:
//
//	12              the integer 12        int         any integer
//	"text"          a bulk string         int(0..9)   an integer from 0 to 9
//	/regexp/        a bulk string         *           any one reply
//	+OK, +"OK"      a status              +/re/       a status
//	-ERR text       an error              -/re/       an error
//	txt"text"       a verbatim string     txt/re/     a verbatim string
//	null            no value ($-1)        null-array  no array (*-1)
//	double(1.5)     a double              bool(t)     a boolean
//	[p, p]          an array              [p, ...]    an array with more elements
//	any[p, p]       an array in any order
//	{p: p, p: p}    a map in this order   {p: p, ...} a map that has these pairs
//	~[p, p]         a set, in any order   >[p, p]     a push
//	closed          no reply: the server closes the connection
//
// In RESP2 a map is a flat array, a set is an array, a verbatim string or a double is a bulk
// string, and a boolean is an integer. In RESP3 both nulls are "_". `as name` after a pattern binds
// the integer, the text, or the text that the first group of the regular expression matches. A
// status or error without quotes extends to the end of the line or, inside of brackets, to the next
// comma or closing bracket.
type pattern struct {
	kind   patternKind
	text   string // the text of the reply; for a double or a boolean, the content of the parentheses
	re     *regexp.Regexp
	low    int64 // low and high are the bounds of an integer
	high   int64
	elems  []pattern // the elements; for a map, its keys and values in turn
	open   bool      // whether the reply may have more elements
	name   string    // the name to which the reply is bound, or ""
	format string
}

type patternKind uint8

const (
	wantAny patternKind = iota
	wantInt
	wantBulk
	wantStatus
	wantError
	wantVerbatim
	wantNull
	wantNullArray
	wantDouble
	wantBool
	wantArray
	wantAnyOrder
	wantMap
	wantSet
	wantPush
	wantClosed
)

// parsePattern parses a line that consists of one pattern.
func parsePattern(text string) (pattern, error) {
	p := parser{rest: text, top: true}
	want, err := p.pattern()
	if err == nil && strings.TrimSpace(p.rest) != "" {
		err = fmt.Errorf("left over: %q", p.rest)
	}
	if err != nil {
		return want, fmt.Errorf("reading the reply %q: %w", text, err)
	}
	return want, nil
}

type parser struct {
	rest string
	top  bool // whether the parser is outside of brackets, where a status or an error may contain any character
}

func (p *parser) space() { p.rest = strings.TrimLeft(p.rest, " \t") }

// take removes prefix from the rest of the text. It returns false, and removes nothing, if the rest
// does not begin with prefix.
func (p *parser) take(prefix string) bool {
	rest, ok := strings.CutPrefix(p.rest, prefix)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *parser) pattern() (want pattern, err error) {
	p.space()
	want, err = p.bare()
	if err != nil {
		return want, err
	}
	p.space()
	if p.take("as ") {
		want.name = p.word()
		if want.name == "" {
			return want, errors.New("as what?")
		}
	}
	return want, nil
}

func (p *parser) bare() (pattern, error) {
	if p.rest == "" {
		return pattern{}, errors.New("a pattern is missing")
	}
	for _, a := range []struct {
		open, closing string
		kind          patternKind
	}{
		{"any[", "]", wantAnyOrder}, {"[", "]", wantArray}, {"~[", "]", wantSet}, {">[", "]", wantPush}, {"{", "}", wantMap},
	} {
		if p.take(a.open) {
			return p.aggregate(a.kind, a.closing)
		}
	}
	switch c := p.rest[0]; {
	case c == '*':
		p.rest = p.rest[1:]
		return pattern{kind: wantAny}, nil
	case c == '"' || c == '/':
		return p.stringOf(wantBulk)
	case c == '+':
		p.rest = p.rest[1:]
		return p.line(wantStatus)
	case c == '-' && !isNumber(p.rest):
		p.rest = p.rest[1:]
		return p.line(wantError)
	case c == '-' || '0' <= c && c <= '9':
		return p.integer()
	}
	return p.named()
}

func isNumber(s string) bool { return len(s) > 1 && '0' <= s[1] && s[1] <= '9' }

func (p *parser) integer() (pattern, error) {
	end := 1
	for end < len(p.rest) && '0' <= p.rest[end] && p.rest[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(p.rest[:end], 10, 64)
	p.rest = p.rest[end:]
	return pattern{kind: wantInt, low: n, high: n}, err
}

// word removes the letters, digits and dashes at the beginning of the rest and returns them.
func (p *parser) word() string {
	end := 0
	for end < len(p.rest) && (p.rest[end] == '-' || 'a' <= p.rest[end] && p.rest[end] <= 'z' || '0' <= p.rest[end] && p.rest[end] <= '9') {
		end++
	}
	word := p.rest[:end]
	p.rest = p.rest[end:]
	return word
}

// named parses a pattern that begins with a lower-case letter.
func (p *parser) named() (pattern, error) {
	switch word := p.word(); word {
	case "null":
		return pattern{kind: wantNull}, nil
	case "null-array":
		return pattern{kind: wantNullArray}, nil
	case "closed":
		return pattern{kind: wantClosed}, nil
	case "int":
		return p.interval()
	case "double", "bool":
		content, err := p.parenthesis()
		kind := wantDouble
		if word == "bool" {
			kind = wantBool
		}
		return pattern{kind: kind, text: content}, err
	case "txt", "mkd":
		want, err := p.stringOf(wantVerbatim)
		want.format = word
		return want, err
	default:
		return pattern{}, fmt.Errorf("no such pattern: %q", word+p.rest)
	}
}

// interval parses the text after "int": nothing, or "(low..high)".
func (p *parser) interval() (pattern, error) {
	want := pattern{kind: wantInt, low: -1 << 63, high: 1<<63 - 1}
	if !strings.HasPrefix(p.rest, "(") {
		return want, nil
	}
	content, err := p.parenthesis()
	if err != nil {
		return want, err
	}
	low, high, _ := strings.Cut(content, "..")
	if want.low, err = strconv.ParseInt(low, 10, 64); err != nil {
		return want, err
	}
	want.high, err = strconv.ParseInt(high, 10, 64)
	return want, err
}

func (p *parser) parenthesis() (string, error) {
	content, rest, ok := strings.Cut(strings.TrimPrefix(p.rest, "("), ")")
	if !ok || p.rest[0] != '(' {
		return "", fmt.Errorf("( and ) expected: %q", p.rest)
	}
	p.rest = rest
	return content, nil
}

// line parses a status or an error, which is a string in quotes, a regular expression, or bare
// text.
func (p *parser) line(kind patternKind) (pattern, error) {
	if p.rest != "" && (p.rest[0] == '"' || p.rest[0] == '/') {
		return p.stringOf(kind)
	}
	end := len(p.rest)
	if !p.top {
		if i := strings.IndexAny(p.rest, ",]}"); i >= 0 {
			end = i
		}
	}
	text := strings.TrimSpace(p.rest[:end])
	p.rest = p.rest[end:]
	if text == "" {
		return pattern{}, errors.New("an empty status or error")
	}
	return pattern{kind: kind, text: text}, nil
}

// stringOf parses a string in double quotes, or a regular expression between slashes.
func (p *parser) stringOf(kind patternKind) (pattern, error) {
	want := pattern{kind: kind}
	if p.rest == "" || p.rest[0] != '"' && p.rest[0] != '/' {
		return want, fmt.Errorf("a string or a regexp expected: %q", p.rest)
	}
	mark, end := p.rest[0], 1
	for end < len(p.rest) && p.rest[end] != mark {
		if p.rest[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(p.rest) {
		return want, fmt.Errorf("%c is not closed: %q", mark, p.rest)
	}
	content := p.rest[:end+1]
	p.rest = p.rest[end+1:]
	if mark == '/' {
		text := strings.ReplaceAll(content[1:len(content)-1], `\/`, "/")
		var err error
		want.re, err = regexp.Compile(`(?s)\A(?:` + text + `)\z`)
		return want, err
	}
	words, err := splitWords(content)
	if err != nil {
		return want, err
	}
	want.text = words[0]
	return want, nil
}

// aggregate parses the elements of an aggregate up to the closing bracket.
func (p *parser) aggregate(kind patternKind, closing string) (pattern, error) {
	want := pattern{kind: kind}
	top := p.top
	p.top = false
	defer func() { p.top = top }()
	for {
		p.space()
		switch {
		case p.take(closing):
			return want, nil
		case p.take("..."):
			want.open = true
			continue
		}
		e, err := p.pattern()
		if err != nil {
			return want, err
		}
		want.elems = append(want.elems, e)
		p.space()
		if kind == wantMap && len(want.elems)%2 == 1 {
			if !p.take(":") {
				return want, fmt.Errorf("a colon expected: %q", p.rest)
			}
			continue
		}
		if !p.take(",") && !strings.HasPrefix(p.rest, closing) {
			return want, fmt.Errorf("%s or a comma expected: %q", closing, p.rest)
		}
	}
}

// splitWords splits text into words as redis-cli does. It returns an error if there is no word or a
// quote is not closed.
func splitWords(text string) ([]string, error) {
	fields, ok := resp.SplitWords([]byte(text))
	if !ok || len(fields) == 0 {
		return nil, fmt.Errorf("nothing, or a quote that is not closed: %q", text)
	}
	words := make([]string, len(fields))
	for i, f := range fields {
		words[i] = string(f)
	}
	return words, nil
}
