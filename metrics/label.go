package metrics

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxLabel is how long the value of a label may be, in bytes.
const maxLabel = 128

// safe returns text as a label may have it: in quotes if it is more than plain printable text,
// and not too long.
func safe(text string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == '"' || r == '\\' }
	if len(text) <= maxLabel && text != "" && utf8.ValidString(text) && strings.IndexFunc(text, odd) < 0 {
		return text
	}
	return strconv.Quote(text[:min(len(text), maxLabel)])
}
