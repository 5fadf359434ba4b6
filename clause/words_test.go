package clause

import (
	"strings"

	"github.com/cellserver/cellserver/resp"
)

// splitWords returns words as the arguments of a command.
func splitWords(args ...string) [][]byte {
	b := make([][]byte, len(args))
	for i, a := range args {
		b[i] = []byte(a)
	}
	return b
}

// words splits a line at its spaces.
func words(line string) [][]byte { return splitWords(strings.Fields(line)...) }

// near returns the syntax error that names a word.
func near(word string) resp.Error { return resp.SyntaxNear([]byte(word)) }
