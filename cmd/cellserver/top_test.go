package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// connectionOf returns the connection that a command line of top describes.
func connectionOf(t *testing.T, args ...string) (address, user, password string, encrypted bool, err error) {
	t.Helper()
	o := topOptions{}
	names, err := parseMixed(topFlags(&o), args)
	require.NoError(t, err)
	options, err := o.options(first(names))
	if err != nil {
		return "", "", "", false, err
	}
	return options.Addr, options.Username, options.Password, options.TLSConfig != nil, nil
}

// TestTopIsCalledAsRedisCliIs: -h is a host, -p a port, and the password need not be on the command
// line, where other users can see it.
func TestTopIsCalledAsRedisCliIs(t *testing.T) {
	t.Setenv("REDISCLI_AUTH", "")
	address, user, password, encrypted, err := connectionOf(t, "-h", "::1", "-p", "6390")
	require.NoError(t, err)
	require.Equal(t, []any{"[::1]:6390", "", "", false}, []any{address, user, password, encrypted})

	t.Setenv("REDISCLI_AUTH", "secret")
	address, user, password, encrypted, err = connectionOf(t, "--user", "oncall", "--tls", "--insecure")
	require.NoError(t, err)
	require.Equal(t, []any{"127.0.0.1:6379", "oncall", "secret", true}, []any{address, user, password, encrypted})

	address, user, password, _, err = connectionOf(t, "redis://a:b@host:1")
	require.NoError(t, err)
	require.Equal(t, []string{"host:1", "a", "b"}, []string{address, user, password})
}

// TestTopSaysWhatIsWrong: errors of the command line, the password and the server.
func TestTopSaysWhatIsWrong(t *testing.T) {
	t.Setenv("REDISCLI_AUTH", "")
	for want, args := range map[string][]string{
		"top: unknown option --onse, did you mean \"--once\"?":            {"--onse"},
		"usage: cellserver top":                                           {"redis://a", "redis://b"},
		"top: --interval is at least 100ms":                               {"--interval", "1ms"},
		"top: the first argument is not an address":                       {"a"},
		"top: a user needs a password":                                    {"--user", "oncall"},
		"top: --cacert: open /no/such/file":                               {"--tls", "--cacert", "/no/such/file"},
		"--askpass needs a terminal: put the password into REDISCLI_AUTH": {"--askpass"},
	} {
		err := showTop(args, &strings.Builder{})
		require.ErrorContains(t, err, want)
	}
}
