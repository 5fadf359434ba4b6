package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFaultsOfTheEnvironmentOfRatelimit: the server does not start, and the error names the variable or the flag.
func TestFaultsOfTheEnvironmentOfRatelimit(t *testing.T) {
	for _, c := range []struct {
		args, environ []string
		want          string
	}{
		{nil, []string{"PORT=http"}, "cellserver: environment variable PORT: \"http\" is not an integer\n"},
		{nil, []string{"PORT=70000"}, "cellserver: environment variable PORT: option \"http-port\": argument must be between 0 and 65535 inclusive\n"},
		{[]string{"--nosuch", "1"}, nil, "cellserver: command line: unknown option \"nosuch\"\n"},
		{nil, []string{"CELLSERVER_RLS_PORT=x"}, "cellserver: environment variable CELLSERVER_RLS_PORT: option \"rls-port\": argument couldn't be parsed into an integer\n"},
		{nil, []string{"GRPC_PORT=8080"}, "cellserver: environment variable GRPC_PORT: rls-port 8080 is the port of option \"http-port\" as well, at 0.0.0.0\n"},
	} {
		var out, errs bytes.Buffer
		require.Equal(t, 1, run(append([]string{"ratelimit"}, c.args...), c.environ, &out, &errs))
		require.Empty(t, out.String())
		require.Equal(t, c.want, errs.String())
	}
}
