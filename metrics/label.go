package metrics

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxLabel is the maximum length of a label value, in bytes.
const maxLabel = 128

// safe returns text in a form for a label value: quoted unless it is plain printable text, and
// shortened.
func safe(text string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == '"' || r == '\\' }
	if len(text) <= maxLabel && text != "" && utf8.ValidString(text) && strings.IndexFunc(text, odd) < 0 {
		return text
	}
	return strconv.Quote(text[:min(len(text), maxLabel)])
}
