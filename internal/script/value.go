package script

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Value is a parsed reply of RESP2 or RESP3.
type Value struct {
	// Type is the first byte of the reply. For "$-1" and "*-1", Type is that byte and Null is true.
	Type byte
	Null bool
	// Text is the content of a reply that is not an integer or an aggregate. For a verbatim string
	// it includes the format, as in "txt:...".
	Text string
	Int  int64
	// Elems has the elements of an aggregate. For a map these are alternating keys and values.
	Elems []Value
}

// maxReply is the maximum length in a reply that is accepted, so that a broken server cannot
// exhaust the memory of the test.
const maxReply = 64 << 20

// ReadValue reads one reply of RESP2 or RESP3.
func ReadValue(r *bufio.Reader) (Value, error) {
	line, err := readLine(r)
	if err != nil {
		return Value{}, err
	}
	if line == "" {
		return Value{}, errors.New("a reply begins with an empty line")
	}
	v := Value{Type: line[0]}
	rest := line[1:]
	switch v.Type {
	case '+', '-', ',', '#', '(':
		v.Text = rest
		return v, nil
	case '_':
		v.Null = true
		return v, nil
	case ':':
		v.Int, err = strconv.ParseInt(rest, 10, 64)
	case '$', '=', '!':
		err = v.readBlob(r, rest)
	case '*', '~', '>', '%':
		err = v.readElems(r, rest)
	default:
		return v, fmt.Errorf("a reply begins with %q", line)
	}
	if err != nil {
		return v, fmt.Errorf("reading %q: %w", line, err)
	}
	return v, nil
}

func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	text, ok := strings.CutSuffix(line, "\r\n")
	if !ok || strings.Contains(text, "\r") {
		return "", fmt.Errorf("a line of a reply does not end in CR LF: %q", line)
	}
	return text, nil
}

func (v *Value) readBlob(r *bufio.Reader, length string) error {
	n, err := strconv.Atoi(length)
	switch {
	case err != nil:
		return err
	case n == -1 && v.Type == '$':
		v.Null = true
		return nil
	case n < 0 || n > maxReply:
		return fmt.Errorf("a string of %d bytes", n)
	}
	blob := make([]byte, n+2)
	if _, err := io.ReadFull(r, blob); err != nil {
		return err
	}
	if string(blob[n:]) != "\r\n" {
		return fmt.Errorf("a string ends in %q", blob[n:])
	}
	v.Text = string(blob[:n])
	return nil
}

func (v *Value) readElems(r *bufio.Reader, count string) error {
	n, err := strconv.Atoi(count)
	switch {
	case err != nil:
		return err
	case n == -1 && v.Type == '*':
		v.Null = true
		return nil
	case n < 0 || n > maxReply/2:
		return fmt.Errorf("an aggregate of %d", n)
	}
	if v.Type == '%' {
		n *= 2
	}
	for range n {
		e, err := ReadValue(r)
		if err != nil {
			return err
		}
		v.Elems = append(v.Elems, e)
	}
	return nil
}

// String returns the value in the notation of scripts, for messages.
func (v Value) String() string {
	switch {
	case v.Null && v.Type == '*':
		return "null-array"
	case v.Null:
		return "null"
	}
	switch v.Type {
	case ':':
		return strconv.FormatInt(v.Int, 10)
	case '$':
		return quote(v.Text)
	case '+', '-':
		return string(v.Type) + quote(v.Text)
	case ',':
		return "double(" + v.Text + ")"
	case '#':
		return "bool(" + v.Text + ")"
	case '=':
		format, text, _ := strings.Cut(v.Text, ":")
		return format + quote(text)
	case '*':
		return "[" + v.join() + "]"
	case '%':
		return v.mapString()
	case '~', '>':
		return string(v.Type) + "[" + v.join() + "]"
	}
	return string(v.Type) + quote(v.Text)
}

func (v Value) join() string {
	parts := make([]string, len(v.Elems))
	for i, e := range v.Elems {
		parts[i] = e.String()
	}
	return strings.Join(parts, ", ")
}

func (v Value) mapString() string {
	var parts []string
	for i := 0; i+1 < len(v.Elems); i += 2 {
		parts = append(parts, v.Elems[i].String()+": "+v.Elems[i+1].String())
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// quote returns text in double quotes, with the escapes of redis-cli.
func quote(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(text) {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
