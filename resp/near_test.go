package resp_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/resp"
)

func TestSyntaxNearQuotesHostileBytesAndIsBounded(t *testing.T) {
	for arg, want := range map[string]string{
		"PEAK":              "ERR syntax error near 'PEAK'",
		"":                  "ERR syntax error near ''",
		"a b":               "ERR syntax error near 'a b'",
		"\r\n-ERR forged":   `ERR syntax error near '\x0d\x0a-ERR forged'`,
		"\x00\xff\x1b[2J\t": `ERR syntax error near '\x00\xff\x1b[2J\x09'`,
		`it's \`:            `ERR syntax error near 'it\'s \\'`,
	} {
		require.Equal(t, resp.Error(want), resp.SyntaxNear([]byte(arg)))
	}
	long := bytes.Repeat([]byte{0xff}, 1<<20)
	require.LessOrEqual(t, len(resp.SyntaxNear(long)), 300)
	require.Contains(t, string(resp.SyntaxNear(long)), `\xff...'`)
}
