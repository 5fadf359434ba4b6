package metrics

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxLabel is the maximum length of a label value, in bytes.
const maxLabel = 128

// safe returns text as a label value. If text is empty, longer than maxLabel bytes, or not printable
// without escapes, the value is its first maxLabel bytes, quoted.
func safe(text string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == '"' || r == '\\' }
	if len(text) <= maxLabel && text != "" && utf8.ValidString(text) && strings.IndexFunc(text, odd) < 0 {
		return text
	}
	return strconv.Quote(text[:min(len(text), maxLabel)])
}
