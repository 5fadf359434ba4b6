package commands

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/tokenbucket"
)

// FuzzParseAcquire: whatever TB.ACQUIRE is asked, what is accepted can be decided.
func FuzzParseAcquire(f *testing.F) {
	for _, call := range []string{
		"k 10 1 1", "k 10 5 1000 3 INTERVAL MS", "k 2 10 1000 1 WAIT 250 MS", "k 5 1 1 DEBT INIT 0 BLOCK 0.5",
		"k 8 2 1 WARMUP 4 COLD 3 WAIT 1", "k 3 10 1 2 PARTIAL", "k 9223372036854775807 1 1 -9223372036854775808 FORCE", "k 1 1e3 +1",
	} {
		f.Add([]byte(call))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		args := bytes.Split(line, []byte(" "))
		var call tokenbucket.Call
		if parseAcquire(args, &call) != "" {
			return
		}
		require.NoError(t, call.Validate())
		require.GreaterOrEqual(t, call.MaxWait, time.Duration(0))
		var plan tokenbucket.Plan
		if err := tokenbucket.Decide(0, nil, 0, 1_700_000_000e9, &call, &plan); err == nil {
			require.GreaterOrEqual(t, plan.Decision.Remaining, int64(0))
			require.LessOrEqual(t, plan.Decision.Remaining, plan.Decision.Limit)
		}
	})
}

// FuzzParseOthers: no other parser of arguments panics or lets a key or clause go
// astray, whatever the words.
func FuzzParseOthers(f *testing.F) {
	for _, call := range []string{
		"3 u:7:s u:7:d ip:9 TB 10 10 1 SW 1000 86400 FIXED CL 99 100 60 WITHDETAILS", "2 a a CL 1 1 1 CL 1 1 1",
		"9223372036854775807 k", "0 MATCH * COUNT 10 TYPE string", "18446744073709551615 COUNT 0", "3 AUTH u p SETNAME n",
		"NX XX", "GT LT", "k m 10 MS", "ID 1 ADDR a:1 SKIPME no", "10 1 60 1",
	} {
		f.Add([]byte(call))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		args := bytes.Split(line, []byte(" "))
		var m multiArgs
		if len(args) >= 3 && m.parse(args, 1000) == "" {
			require.NotEmpty(t, m.clauses)
			require.Len(t, m.details, len(m.clauses))
			for i, c := range m.clauses {
				require.Equal(t, args[1+i], c.Key)
			}
		}
		var scan scanCall
		if parseScan(args, &scan) == "" {
			require.Positive(t, scan.count)
		}
		var greeting helloCall
		if len(args) > 0 && parseHello(args, &greeting) == "" {
			require.Contains(t, []int{2, 3}, greeting.proto)
		}
		_, _ = parseExpireOptions(args) // only must not panic, as what follows
		_, _ = parseKill(args)
		if at, ok := multiKeys(append([][]byte{[]byte("rl.multi")}, args...)); ok {
			require.LessOrEqual(t, at[len(at)-1], len(args))
		}
	})
}
