package limiters

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/clause"
)

// FuzzParseMulti: whatever the arguments, each parsed clause has its own key, and none is lost.
func FuzzParseMulti(f *testing.F) {
	for _, call := range []string{
		"3 u:7:s u:7:d ip:9 TB 10 10 1 SW 1000 86400 FIXED CL 99 100 60 WITHDETAILS", "2 a a CL 1 1 1 CL 1 1 1",
		"9223372036854775807 k", "0 MATCH * COUNT 10 TYPE string", "18446744073709551615 COUNT 0", "3 AUTH u p SETNAME n",
		"2 k l CC 3 10 TB 1 1 1 MEMBER MS PEEK", "1 k CC 3 10 MEMBER CC MS", "NX XX", "GT LT", "k m 10 MS", "ID 1 ADDR a:1 SKIPME no", "10 1 60 1",
	} {
		f.Add([]byte(call))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		args := bytes.Split(line, []byte(" "))
		var m multiArgs
		if len(args) >= 3 && m.parse(args, clause.Options{LogMaxEntries: 1000}) == "" {
			require.NotEmpty(t, m.Clauses)
			require.Len(t, m.Details, len(m.Clauses))
			for i, c := range m.Clauses {
				require.Equal(t, args[1+i], c.Key)
				if c.Lease != nil {
					require.Equal(t, m.member[1], c.Lease.Member)
					require.NoError(t, c.Lease.Validate())
				}
			}
		}
		keys := multiCommands()[0].Keys
		_, end, _ := keys.Range(append([][]byte{[]byte("rl.multi")}, args...))
		require.LessOrEqual(t, end, len(args)+1)
	})
}
