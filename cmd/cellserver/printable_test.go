package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTextOfServersIsPrintedWithoutControlCharacters prints text of a hostile server: 7-bit and
// 8-bit escape sequences, and characters that change the direction of text.
func TestTextOfServersIsPrintedWithoutControlCharacters(t *testing.T) {
	const hostile = "a\x1b]0;title\x07\u009b2J\u202eb\rc"
	const harmless = "a?]0;title??2J?b?c"
	var report, stderr strings.Builder
	require.NoError(t, writeFindings(&report, &outcome{title: hostile, moves: []string{hostile}}))
	require.Equal(t, harmless+"\n\nMoves\n  "+harmless+"\n", report.String())
	require.Equal(t, 1, fail(&stderr, errors.New("ERR "+hostile+"\nsecond line")))
	require.Equal(t, "cellserver: ERR "+harmless+"\nsecond line\n", stderr.String())
}
