package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
)

// TestFaultsTellNoSecrets: no fault contains a password from a faulty line, whatever is wrong
// with the line.
func TestFaultsTellNoSecrets(t *testing.T) {
	const canary = "s3cret.Canary"
	lines := []string{
		canary, canary + " x", "\"" + canary, "'" + canary + "' 'x", "requirepass" + canary, "requirepas " + canary, "requirepass " + canary + " x", "requirepass x " + canary,
		"user app on " + canary + "\nuser", "rename-command get " + canary + " x", "masterauth " + canary + "\nmasterauth", "replicaof " + canary + " x", "sentinel auth-pass x " + canary,
		"store valkey://user:" + canary + "@h:1x/", "store http://user:" + canary + "@h/", "store valkey://:" + canary + "@", "store " + canary,
		"store valkey://u:" + canary + "@h:1 x", "store valkey://u:" + canary + "%zz@h:1", "tls-key-file-pass " + canary + " x",
	}
	c, err := config.Load(nil, nil)
	require.NoError(t, err)
	for _, pair := range c.Get(func(string) bool { return true }) {
		lines = append(lines, pair[0]+"="+canary, pair[0]+":"+canary, pair[0]+"=\""+canary)
	}
	for _, line := range lines {
		path := writeConfig(t, "timeout x\n"+line+"\n")
		_, err := config.Load([]string{path}, nil)
		require.ErrorContains(t, err, path+":1: ")
		require.ErrorContains(t, err, "\n"+path+":", line)
		require.NotContains(t, err.Error(), canary, line)
	}
	_, err = config.Load([]string{writeConfig(t, "RequirePass=x\nmaxmemroy 1\nlua-new-thing 1\nN0thing 1")}, nil)
	for _, want := range []string{
		`:1: option "requirepass" is followed by '=': write a space there`,
		`:2: unknown option "maxmemroy", did you mean "maxmemory"?`, `:3: unknown option "lua-new-thing"`, ":4: unknown option",
	} {
		require.ErrorContains(t, err, want)
	}
}
