package document

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/cellserver/cellserver/policy"
)

// Append appends the document as YAML to dst. The order and the quotes depend only on the content.
// [Parse] reads the same document from it, except for lines and order.
func (d *Document) Append(dst []byte) []byte {
	if len(d.Policies) == 0 {
		return append(dst, "policies: {}\n"...)
	}
	dst = append(dst, "policies:\n"...)
	for _, p := range d.sorted() {
		dst = appendKey(dst, "  ", p.Name)
		if p.Comment != "" {
			dst = append(appendScalar(append(dst, "    comment: "...), p.Comment), '\n')
		}
		if p.Millis {
			dst = append(dst, "    ms: true\n"...)
		}
		for _, field := range p.switches() {
			dst = append(append(append(dst, "    "...), field...), ": true\n"...)
		}
		if p.Key.IP {
			dst = append(appendScalar(append(dst, "    key: "...), p.Key.String()), '\n')
		}
		if p.Notify > 0 {
			dst = append(append(append(dst, "    notify: "...), policy.ShareText(p.Notify)...), '\n')
		}
		if p.Classes != "" {
			dst = append(p.appendClasses(append(dst, "    "...)), '\n')
		}
		dst = append(appendLimits(append(dst, "    "...), p.Limits), '\n')
		if len(p.Overrides) > 0 {
			dst = append(dst, "    overrides:\n"...)
		}
		for _, o := range p.sorted() {
			dst = appendKey(dst, "      ", o.Pattern)
			if o.Comment != "" {
				dst = append(appendScalar(append(dst, "        comment: "...), o.Comment), '\n')
			}
			if o.Millis != p.Millis {
				dst = append(strconv.AppendBool(append(dst, "        ms: "...), o.Millis), '\n')
			}
			dst = append(appendLimits(append(dst, "        "...), o.Limits), '\n')
			if !o.Expires.IsZero() {
				dst = append(appendExpires(append(dst, "        "...), o.Expires), '\n')
			}
		}
	}
	return dst
}

// sorted returns the policies in the order of their names.
func (d *Document) sorted() []*Policy {
	list := make([]*Policy, len(d.Policies))
	for i := range d.Policies {
		list[i] = &d.Policies[i]
	}
	slices.SortFunc(list, func(a, b *Policy) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// sorted returns the overrides in the order of their patterns.
func (p *Policy) sorted() []*Override {
	list := make([]*Override, len(p.Overrides))
	for i := range p.Overrides {
		list[i] = &p.Overrides[i]
	}
	slices.SortFunc(list, func(a, b *Override) int { return strings.Compare(a.Pattern, b.Pattern) })
	return list
}

// appendClasses appends the classes of the policy as YAML on one line.
func (p *Policy) appendClasses(dst []byte) []byte {
	dst = append(dst, "classes: {"...)
	for i, c := range p.ClassList() {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = append(appendScalar(dst, c.Name), ": "...)
		dst = append(strconv.AppendInt(dst, c.Keep, 10), '%')
	}
	return append(dst, '}')
}

// switches returns the names of the switches of the policy that are on.
func (p *Policy) switches() (fields []string) {
	for _, s := range policy.Switches {
		if *s.Of(&p.Flags) {
			fields = append(fields, s.Field)
		}
	}
	return fields
}

// appendFlow appends the policy itself as YAML on one line, without its overrides.
func (p *Policy) appendFlow(dst []byte) []byte {
	dst = append(dst, '{')
	if p.Comment != "" {
		dst = append(appendScalar(append(dst, "comment: "...), p.Comment), ", "...)
	}
	if p.Millis {
		dst = append(dst, "ms: true, "...)
	}
	for _, field := range p.switches() {
		dst = append(append(dst, field...), ": true, "...)
	}
	if p.Key.IP {
		dst = append(appendScalar(append(dst, "key: "...), p.Key.String()), ", "...)
	}
	if p.Notify > 0 {
		dst = append(append(append(dst, "notify: "...), policy.ShareText(p.Notify)...), ", "...)
	}
	if p.Classes != "" {
		dst = append(p.appendClasses(dst), ", "...)
	}
	return append(appendLimits(dst, p.Limits), '}')
}

// appendFlow appends the override as YAML on one line.
func (o *Override) appendFlow(dst []byte) []byte {
	dst = append(dst, '{')
	if o.Comment != "" {
		dst = append(appendScalar(append(dst, "comment: "...), o.Comment), ", "...)
	}
	if o.Millis {
		dst = append(dst, "ms: true, "...)
	}
	dst = appendLimits(dst, o.Limits)
	if !o.Expires.IsZero() {
		dst = appendExpires(append(dst, ", "...), o.Expires)
	}
	return append(dst, '}')
}

func appendLimits(dst []byte, clauses []string) []byte {
	dst = append(dst, "limits: ["...)
	for i, c := range clauses {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = appendScalar(dst, c)
	}
	return append(dst, ']')
}

func appendExpires(dst []byte, at time.Time) []byte {
	return at.UTC().AppendFormat(append(dst, "expires: "...), time.RFC3339Nano)
}

// longKey is the length in bytes from which a key is written with a question mark. Without the mark
// YAML accepts only keys of up to 1,024 characters, including their escape sequences.
const longKey = 200

// appendKey appends the line, or for a long key the lines, of a key whose value is the mapping
// below it. indent is the indentation of these lines.
func appendKey(dst []byte, indent, key string) []byte {
	dst = append(dst, indent...)
	if len(key) < longKey {
		return append(appendScalar(dst, key), ":\n"...)
	}
	dst = appendScalar(append(dst, "? "...), key)
	dst = append(append(append(dst, '\n'), indent...), ':')
	return append(dst, '\n')
}

// appendScalar appends text in a form that a parser reads as the same text. It quotes text that a
// parser could read as another type.
func appendScalar(dst []byte, text string) []byte {
	switch {
	case !utf8.ValidString(text):
		dst = append(dst, `!!binary "`...)
		return append(base64.StdEncoding.AppendEncode(dst, []byte(text)), '"')
	case isPlain(text):
		return append(dst, text...)
	}
	dst = append(dst, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', byte(c))
		case c == '\n':
			dst = append(dst, `\n`...)
		case c != '\uFEFF' && unicode.IsPrint(c):
			dst = utf8.AppendRune(dst, c)
		default:
			dst = appendEscape(dst, c)
		}
	}
	return append(dst, '"')
}

// appendEscape appends the escape sequence \x, \u or \U of a character.
func appendEscape(dst []byte, c rune) []byte {
	letter, digits := byte('x'), 2
	switch {
	case c > 0xffff:
		letter, digits = 'U', 8
	case c > 0xff:
		letter, digits = 'u', 4
	}
	dst = append(dst, '\\', letter)
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		dst = append(dst, "0123456789abcdef"[c>>shift&0xf])
	}
	return dst
}

// words has the words that a parser of old or new YAML does not read as text unless they are
// quoted.
var words = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"}

// isPlain reports whether text needs no quotes: it begins with a letter, consists of letters,
// digits and a few signs, does not end with a space, and is none of words.
func isPlain(text string) bool {
	if text == "" || text[len(text)-1] == ' ' || slices.Contains(words, strings.ToLower(text)) {
		return false
	}
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case i > 0 && ('0' <= c && c <= '9' || c == '_' || c == '-' || c == '.' || c == ' ' || c == '/'):
		default:
			return false
		}
	}
	return true
}
