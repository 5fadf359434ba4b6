package connection

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/command"
)

// FuzzParseClient: HELLO, CLIENT KILL and CLIENT LIST do not panic, whatever the words.
func FuzzParseClient(f *testing.F) {
	for _, call := range []string{
		"3 u:7:s u:7:d ip:9 TB 10 10 1 SW 1000 86400 FIXED CL 99 100 60 WITHDETAILS", "2 a a CL 1 1 1 CL 1 1 1",
		"9223372036854775807 k", "0 MATCH * COUNT 10 TYPE string", "18446744073709551615 COUNT 0", "3 AUTH u p SETNAME n",
		"NX XX", "GT LT", "k m 10 MS", "ID 1 ADDR a:1 SKIPME no", "ID 1 2 3 TYPE normal MAXAGE 9223372036854775807", "10 1 60 1",
	} {
		f.Add([]byte(call))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		args := bytes.Split(line, []byte(" "))
		var greeting helloCall
		if len(args) > 0 && parseHello(args, &greeting) == "" {
			require.Contains(t, []int{2, 3}, greeting.proto)
		}
		for _, list := range []bool{false, true} {
			_, _ = parseFilter(args, acl.NewUsers(new(command.Table)), list)
		}
	})
}
