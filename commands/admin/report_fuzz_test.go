package admin_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// FuzzReportCommand: RL.REPORT replies with JSON or an error of one line, whatever its options.
func FuzzReportCommand(f *testing.F) {
	f.Add("KEYS BY calls COUNT 5 GROUP api")
	s, err := inproc.Feed(inproc.Epoch)
	require.NoError(f, err)
	f.Cleanup(s.Close)
	f.Fuzz(func(t *testing.T, words string) {
		reply, err := s.Do(append([]string{"RL.REPORT"}, strings.Split(words, " ")...)...)
		require.NoError(t, err, "%q: %q", words, reply)
		switch reply[0] {
		case '-':
			require.Equal(t, 1, bytes.Count(reply, []byte("\r\n")), "%q", reply)
			require.Less(t, len(reply), 1000)
		default:
			require.Contains(t, "$*", string(reply[:1]), "%q", reply)
		}
	})
}
