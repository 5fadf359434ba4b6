package cel

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// class is the class of a token.
type class uint8

const (
	end    class = iota
	name         // an identifier or a word such as true
	sign         // an operator or a bracket
	number       // digits
	text         // text in quotes
)

// token is a token of an expression. is has its characters; for text, it has those that the token stands for.
type token struct {
	class class
	is    string
}

// String returns the token for an error.
func (t token) String() string {
	switch t.class {
	case end:
		return "the end"
	case text:
		return "the text " + strconv.Quote(t.is)
	}
	return strconv.Quote(t.is)
}

// signs are the signs of the language, longer ones before their beginnings.
var signs = [...]string{"==", "!=", "<=", ">=", "&&", "||", "<", ">", "!", "+", ".", ",", "(", ")", "[", "]"}

// lexer splits an expression into tokens.
type lexer struct{ rest string }

// next returns the next token, of class end behind the last one.
func (l *lexer) next() (token, error) {
	l.rest = strings.TrimLeft(l.rest, " \t\r\n\f")
	if l.rest == "" {
		return token{}, nil
	}
	switch c := l.rest[0]; {
	case isLetter(c):
		is := l.take(func(c byte) bool { return isLetter(c) || isDigit(c) })
		if l.rest != "" && (l.rest[0] == '"' || l.rest[0] == '\'') {
			return token{}, fmt.Errorf("text with the prefix %s is not supported", is)
		}
		return token{name, is}, nil
	case isDigit(c):
		is := l.take(isDigit)
		if l.rest != "" && (isLetter(l.rest[0]) || l.rest[0] == '.') {
			return token{}, fmt.Errorf("the number at %s is not supported: only whole decimal numbers are", l.near(is))
		}
		return token{number, is}, nil
	case c == '"' || c == '\'':
		return l.text(c)
	}
	for _, s := range signs {
		if strings.HasPrefix(l.rest, s) {
			l.rest = l.rest[len(s):]
			return token{sign, s}, nil
		}
	}
	r, _ := utf8.DecodeRuneInString(l.rest)
	return token{}, fmt.Errorf("%q is not supported", r)
}

// take takes the bytes off the rest that f is true for.
func (l *lexer) take(f func(byte) bool) string {
	n := 0
	for n < len(l.rest) && f(l.rest[n]) {
		n++
	}
	is := l.rest[:n]
	l.rest = l.rest[n:]
	return is
}

// near returns a beginning of what was read as is and of the rest, for an error.
func (l *lexer) near(is string) string {
	const most = 20
	all := strings.ToValidUTF8(is+l.rest[:min(most, len(l.rest))], "")
	return strconv.Quote(all)
}

// text reads text in quotes.
func (l *lexer) text(quote byte) (token, error) {
	if strings.HasPrefix(l.rest[1:], string([]byte{quote, quote})) {
		return token{}, fmt.Errorf("text in three quotes is not supported")
	}
	var is strings.Builder
	for rest := l.rest[1:]; ; {
		switch {
		case rest == "" || rest[0] == '\n' || rest[0] == '\r':
			return token{}, fmt.Errorf("a text has no end: %s", l.near(""))
		case rest[0] == quote:
			l.rest = rest[1:]
			return token{text, is.String()}, nil
		case rest[0] != '\\':
			is.WriteByte(rest[0])
			rest = rest[1:]
		case len(rest) > 1 && strings.IndexByte("\"'`?", rest[1]) >= 0:
			is.WriteByte(rest[1])
			rest = rest[2:]
		default:
			c, _, tail, err := strconv.UnquoteChar(rest, 0)
			if err != nil {
				return token{}, fmt.Errorf("a text has an unknown escape: %s", strconv.Quote(rest[:min(2, len(rest))]))
			}
			is.WriteRune(c)
			rest = tail
		}
	}
}

func isLetter(c byte) bool { return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
