package report_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/report"
)

// TestKeysThatAreNotTextAreBase64: keys survive JSON unchanged.
func TestKeysThatAreNotTextAreBase64(t *testing.T) {
	for key, want := range map[report.Key]string{
		"api:acme": `"api:acme"`, "": `""`, "a\x00<b>": `"a\u0000\u003cb\u003e"`, "ключ": `"ключ"`,
		"\xff\x00": `{"b64":"/wA="}`, "a\xc3": `{"b64":"YcM="}`,
	} {
		text, err := json.Marshal(key)
		require.NoError(t, err)
		require.Equal(t, want, string(text))
		var back report.Key
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, key, back)
	}
	for _, bad := range []string{`1`, `null`, `{}`, `{"b64":null}`, `{"b64":"*"}`, `[]`, `{"b64":1}`} {
		var k report.Key
		require.Error(t, json.Unmarshal([]byte(bad), &k), bad)
	}
}
