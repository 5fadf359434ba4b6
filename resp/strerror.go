package resp

import (
	"errors"
	"strings"
)

// Strerror returns the text of the innermost error that err wraps, with a capital letter. For an
// error of the operating system this is the text of C's strerror, which error replies of Redis
// contain, without a path.
func Strerror(err error) string {
	for u := err; u != nil; u = errors.Unwrap(u) {
		err = u
	}
	text := err.Error()
	return strings.ToUpper(text[:min(1, len(text))]) + text[min(1, len(text)):]
}
