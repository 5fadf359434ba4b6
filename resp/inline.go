package resp

import "bytes"

// inline parses the inline command that begins at in[0], or continues to do so. Inline commands are
// the protocol for users of a terminal. It returns the words as out and the length of the line as
// n, or 0 if the line is not complete or invalid. For a blank line out is empty.
func (g *Guard) inline(in []byte, args [][]byte, lim *Limits) (out [][]byte, n int, err Error) {
	if isClientHello(in) {
		return args[:0], 0, ErrTLS
	}
	reach := min(len(in), lim.MaxInline+1)
	from := min(g.seen, reach)
	lf, searched := findLineFeed(in[from:reach])
	if lf < 0 {
		g.seen = from + searched
		if len(in) > lim.MaxInline {
			return args[:0], 0, ErrInlineTooBig
		}
		return args[:0], 0, ""
	}
	*g = Guard{}
	line := in[:from+lf]
	n = len(line) + 1
	if last := len(line) - 1; last >= 0 && line[last] == '\r' {
		line = line[:last]
	}
	out, ok := splitWords(line, args)
	if !ok {
		return args[:0], 0, ErrUnbalanced
	}
	return out, n, ""
}

// isClientHello reports whether in begins like the first message of a TLS client: a record of the
// handshake, of any version, with a ClientHello. Such a message usually contains no line end, so
// without this check client and server would both wait.
func isClientHello(in []byte) bool {
	return len(in) > 5 && in[0] == 22 && in[1] == 3 && in[5] == 1
}

// findLineFeed returns the index of the line feed that Redis would find in b, or -1. searched is
// the number of bytes that need not be searched again. As in Redis, a line feed after a NUL byte is
// not found.
func findLineFeed(b []byte) (lf, searched int) {
	if len(b) > 0 && b[0] == 0 {
		return -1, 0
	}
	lf = bytes.IndexByte(b, '\n')
	if lf >= 0 {
		b = b[:lf]
	}
	if nul := bytes.IndexByte(b, 0); nul >= 0 {
		return -1, nul
	}
	return lf, len(b)
}

// splitWords splits line into words as Redis' sdssplitargs does, and returns them in the memory of
// args if they fit. ok is false if quotes are unbalanced. Words without quotes are slices of line.
// The other words share one new buffer, which suffices since a word is never longer than its
// spelling in the line. So time and memory are linear in the length of the line.
func splitWords(line []byte, args [][]byte) (out [][]byte, ok bool) {
	args = args[:0]
	if words := countRuns(line); words > cap(args) {
		args = make([][]byte, 0, words)
	}
	var unquoted []byte
	for i := 0; i < len(line); {
		if isSpace(line[i]) {
			i++
			continue
		}
		start := i
		for i < len(line) && !endsWord(line[i]) && line[i] != '"' && line[i] != '\'' {
			i++
		}
		if i == len(line) || endsWord(line[i]) {
			args = append(args, line[start:i:i])
			continue
		}
		if unquoted == nil {
			unquoted = make([]byte, 0, len(line))
		}
		from := len(unquoted)
		unquoted = append(unquoted, line[start:i]...)
		if line[i] == '"' {
			unquoted, i, ok = appendDoubleQuoted(unquoted, line, i+1)
		} else {
			unquoted, i, ok = appendSingleQuoted(unquoted, line, i+1)
		}
		if !ok {
			return args, false
		}
		args = append(args, unquoted[from:len(unquoted):len(unquoted)])
	}
	return args, true
}

// countRuns returns the number of sequences without blanks in line, which is at least the number of
// words.
func countRuns(line []byte) int {
	runs := 0
	blank := true
	for _, c := range line {
		next := isSpace(c)
		if blank && !next {
			runs++
		}
		blank = next
	}
	return runs
}

// appendDoubleQuoted appends to dst the text from line[i] to the closing double quote, without its
// escapes. It returns the result and the index after the closing quote. A quote may open anywhere
// in a word, but the closing quote ends the word. ok is false if there is no closing quote or the
// word goes on behind it.
func appendDoubleQuoted(dst, line []byte, i int) (word []byte, next int, ok bool) {
	for ; i < len(line); i++ {
		switch {
		case line[i] == '"':
			return dst, i + 1, closesWord(line, i)
		case line[i] != '\\' || i+1 == len(line):
			dst = append(dst, line[i])
		case i+3 < len(line) && line[i+1] == 'x' && isHex(line[i+2]) && isHex(line[i+3]):
			dst = append(dst, hexValue(line[i+2])<<4|hexValue(line[i+3]))
			i += 3
		default:
			i++
			dst = append(dst, escaped(line[i]))
		}
	}
	return dst, i, false
}

// appendSingleQuoted does what appendDoubleQuoted does, for a word with single quotes. Between
// single quotes only the quote itself can be escaped.
func appendSingleQuoted(dst, line []byte, i int) (word []byte, next int, ok bool) {
	for ; i < len(line); i++ {
		switch {
		case line[i] == '\'':
			return dst, i + 1, closesWord(line, i)
		case line[i] == '\\' && i+1 < len(line) && line[i+1] == '\'':
			i++
		}
		dst = append(dst, line[i])
	}
	return dst, i, false
}

// closesWord reports whether the quote at line[i] may be a closing quote: a blank or the end of the
// line must follow.
func closesWord(line []byte, i int) bool {
	return i+1 == len(line) || isSpace(line[i+1])
}

// escaped returns the byte that a backslash followed by c stands for.
func escaped(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'a':
		return '\a'
	}
	return c
}

// isSpace reports whether c is a blank that Redis skips before a word, as C's isspace does.
func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// endsWord reports whether c ends a word outside of quotes. In Redis a vertical tab or form feed
// does not end a word, although both are skipped before a word.
func endsWord(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func hexValue(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	}
	return c - 'a' + 10
}

// IsCrossProtocol reports whether name, the name of a command, is a word with which a line of an
// HTTP request begins: "post" or "host:", in any case. A web page can make a browser send such a
// request to this server, and a later line of the request may be a command. Redis closes such a
// connection without a reply, and so must the caller.
func IsCrossProtocol(name []byte) bool {
	switch len(name) { // the length also rules out longer words that are equal under Unicode folding
	case len("post"):
		return bytes.EqualFold(name, []byte("post"))
	case len("host:"):
		return bytes.EqualFold(name, []byte("host:"))
	}
	return false
}
