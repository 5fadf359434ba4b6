package libraries

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	glua "github.com/yuin/gopher-lua"

	"github.com/cellserver/cellserver/lua/sandbox"
	"github.com/cellserver/cellserver/lua/value"
)

// jsonDecoder decodes what lua-cjson 2.1 accepts. This is a little more than JSON: numbers may be
// hexadecimal, infinite or not a number.
type jsonDecoder struct {
	run  *Runtime
	l    *glua.LState
	text string
	at   int
	// token is the name of the present token. value is its value, if it has one, and place its
	// index in text.
	token string
	value glua.LValue
	place int
}

// These are the names of tokens, as they occur in the errors of lua-cjson.
const (
	tokenObject    = "T_OBJ_BEGIN"
	tokenObjectEnd = "T_OBJ_END"
	tokenArray     = "T_ARR_BEGIN"
	tokenArrayEnd  = "T_ARR_END"
	tokenString    = "T_STRING"
	tokenNumber    = "T_NUMBER"
	tokenBoolean   = "T_BOOLEAN"
	tokenNull      = "T_NULL"
	tokenColon     = "T_COLON"
	tokenComma     = "T_COMMA"
	tokenEnd       = "T_END"
)

var punctuation = map[byte]string{
	'{': tokenObject, '}': tokenObjectEnd, '[': tokenArray, ']': tokenArrayEnd, ':': tokenColon, ',': tokenComma,
}

func (r *Runtime) jsonDecode(l *glua.LState) int {
	if l.GetTop() != 1 {
		sandbox.ArgError(l, 1, "expected 1 argument")
	}
	d := jsonDecoder{run: r, l: l, text: sandbox.CheckText(l, 1)}
	if len(d.text) >= 2 && (d.text[0] == 0 || d.text[1] == 0) {
		sandbox.Raisef(l, "JSON parser does not support UTF-16 or UTF-32")
	}
	d.next()
	v := d.parse(0)
	d.next()
	if d.token != tokenEnd {
		d.expected("the end")
	}
	l.Push(v)
	return 1
}

// expected raises an error which says that the decoder expected what but found the present token,
// which may be an invalid one.
func (d *jsonDecoder) expected(what string) {
	sandbox.Raisef(d.l, "Expected %s but found %s at character %d", what, d.token, d.place+1)
}

func (d *jsonDecoder) parse(depth int) glua.LValue {
	d.run.Guard.Step(d.l, 1)
	switch d.token {
	case tokenString, tokenNumber, tokenBoolean, tokenNull:
		return d.value
	case tokenObject:
		return d.object(d.deeper(depth))
	case tokenArray:
		return d.array(d.deeper(depth))
	}
	d.expected("value")
	return glua.LNil
}

func (d *jsonDecoder) deeper(depth int) int {
	depth++
	if depth > min(orDefault(d.run.json.decodeDepth, maxJSONDepth), maxJSONDepth) {
		sandbox.Raisef(d.l, "Found too many nested data structures (%d) at character %d", depth, d.place+1)
	}
	return depth
}

func (d *jsonDecoder) object(depth int) glua.LValue {
	t := d.l.CreateTable(0, 0)
	d.next()
	if d.token == tokenObjectEnd {
		return t
	}
	for {
		if d.token != tokenString {
			d.expected("object key string")
		}
		key := d.value
		d.next()
		if d.token != tokenColon {
			d.expected("colon")
		}
		d.next()
		t.RawSet(key, d.parse(depth))
		d.next()
		if d.token == tokenObjectEnd {
			return t
		}
		if d.token != tokenComma {
			d.expected("comma or object end")
		}
		d.next()
	}
}

func (d *jsonDecoder) array(depth int) glua.LValue {
	t := d.l.CreateTable(0, 0)
	d.next()
	if d.token == tokenArrayEnd {
		return t
	}
	for i := 1; ; i++ {
		t.RawSet(glua.LNumber(i), d.parse(depth))
		d.next()
		if d.token == tokenArrayEnd {
			return t
		}
		if d.token != tokenComma {
			d.expected("comma or array end")
		}
		d.next()
	}
}

// next reads the next token into d.token, its value into d.value, and its position into d.place. At
// the end of the text, d.token is tokenEnd.
func (d *jsonDecoder) next() {
	for d.at < len(d.text) && strings.IndexByte(" \t\n\r", d.text[d.at]) >= 0 {
		d.at++
	}
	d.place = d.at
	if d.at >= len(d.text) {
		d.token = tokenEnd
		return
	}
	c := d.text[d.at]
	if name, ok := punctuation[c]; ok {
		d.token = name
		d.at++
		return
	}
	switch {
	case c == '"':
		d.string()
	case c == '-' || c == '+' || value.IsDigit(c):
		d.number()
	default:
		d.word()
	}
}

func (d *jsonDecoder) word() {
	rest := d.text[d.at:]
	for _, w := range []struct {
		word, token string
		value       glua.LValue
	}{
		{"true", tokenBoolean, glua.LTrue},
		{"false", tokenBoolean, glua.LFalse},
		{"null", tokenNull, d.run.nullValue},
	} {
		if strings.HasPrefix(rest, w.word) {
			d.token, d.value = w.token, w.value
			d.at += len(w.word)
			return
		}
	}
	if !d.run.json.refuseInvalid && len(rest) > 0 && strings.IndexByte("nNiI", rest[0]) >= 0 {
		d.number()
		return
	}
	d.token = "invalid token"
}

// number reads the longest text at d.at that is a number, as C's strtod does. If there is none,
// d.token is the name of an invalid token.
func (d *jsonDecoder) number() {
	end := d.at
	for end < len(d.text) && strings.IndexByte("+-.", d.text[end]) >= 0 || end < len(d.text) && (value.IsDigit(d.text[end]) || value.IsLetter(d.text[end])) {
		end++
		if end-d.at > 512 {
			break
		}
	}
	for ; end > d.at; end-- {
		text := d.text[d.at:end]
		f, ok := value.Parse(text)
		if !ok || value.IsSpace(text[len(text)-1]) {
			continue
		}
		if d.run.json.refuseInvalid && !plainNumber(text) {
			break
		}
		d.token, d.value = tokenNumber, value.FromFloat(f)
		d.at = end
		return
	}
	d.token = "invalid number"
	if !value.IsDigit(d.text[d.at]) && d.text[d.at] != '-' {
		d.token = "invalid token"
	}
}

// plainNumber reports whether text, which value.Parse has accepted, is a number without the forms
// that strict decoding refuses: +1, 0x1, 01, inf and nan.
func plainNumber(text string) bool {
	text = strings.TrimPrefix(text, "-")
	if text[0] == '+' || strings.ContainsAny(text, "xXiInN") {
		return false
	}
	return len(text) < 2 || text[0] != '0' || !value.IsDigit(text[1])
}

func (d *jsonDecoder) string() {
	d.at++
	start := d.at
	i := strings.IndexAny(d.text[start:], `"\`)
	if i >= 0 && d.text[start+i] == '"' {
		d.token, d.value = tokenString, glua.LString(d.text[start:start+i])
		d.at = start + i + 1
		return
	}
	b := d.run.Guard.NewBuilder(d.l)
	for d.at < len(d.text) {
		c := d.text[d.at]
		switch c {
		case '"':
			d.at++
			d.token, d.value = tokenString, b.Value()
			return
		case '\\':
			if !d.escape(&b) {
				return
			}
		default:
			b.Put(c)
			d.at++
		}
	}
	d.token, d.place = "unexpected end of string", d.at
}

var escapes = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escape appends the character of the escape sequence at d.at to b and advances d.at. It returns
// false, with an invalid token, if the sequence is invalid.
func (d *jsonDecoder) escape(b *sandbox.Builder) bool {
	if d.at+1 < len(d.text) {
		c := d.text[d.at+1]
		if plain, ok := escapes[c]; ok {
			b.Put(plain)
			d.at += 2
			return true
		}
		if c == 'u' {
			return d.unicode(b)
		}
	}
	d.token, d.place = "invalid escape code", d.at
	return false
}

func (d *jsonDecoder) unicode(b *sandbox.Builder) bool {
	first, ok := d.hex(d.at)
	size := 6
	if ok && utf16.IsSurrogate(first) {
		second, ok2 := d.hex(d.at + 6)
		first, size = utf16.DecodeRune(first, second), 12
		ok = ok2 && first != utf8.RuneError
	}
	if !ok {
		d.token, d.place = "invalid unicode escape code", d.at
		return false
	}
	b.WriteRune(first)
	d.at += size
	return true
}

// hex reads the escape sequence \uXXXX at the index at. The second result is false if there is
// none.
func (d *jsonDecoder) hex(at int) (rune, bool) {
	if at+6 > len(d.text) || d.text[at] != '\\' || d.text[at+1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(d.text[at+2:at+6], 16, 16)
	return rune(n), err == nil
}
