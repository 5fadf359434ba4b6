package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCheckConfigTellsEveryFault: the faults of the file, of included files and of users are
// reported with their lines, and the status is 1.
func TestCheckConfigTellsEveryFault(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	more := file("more.conf", "# more\nmaxclients 0\n")
	users := file("users.acl", "user default on nopass +@all ~* &*\nuser app (\n")
	bad := file("bad.conf", "timeout x\ninclude "+more+"\nmaxmemroy 1gb\nrequirepass \"canary\naclfile "+users+"\ndir /nonexistent\n")
	check := func(args ...string) (status int, stdout, stderr string) {
		var out, err bytes.Buffer
		status = run(append([]string{"check-config"}, args...), nil, &out, &err)
		return status, out.String(), err.String()
	}
	status, stdout, stderr := check(bad)
	require.Equal(t, 1, status)
	require.Empty(t, stdout)
	require.Equal(t, "cellserver: "+bad+`:1: option "timeout": argument couldn't be parsed into an integer
`+more+`:2: option "maxclients": argument must be between 1 and 1048576 inclusive
`+bad+`:3: unknown option "maxmemroy", did you mean "maxmemory"?
`+bad+`:4: unbalanced quotes
`+bad+`:6: Can't chdir to '/nonexistent': No such file or directory
`+users+`:2: Unmatched parenthesis in selector definition
`+bad+": 6 faults\n", stderr)

	good := file("good.conf", "hz 20\ntimeout 5\nuser app on >p\nuser default on >q\nbind *\n")
	status, stdout, stderr = check(good, "--dir", dir)
	require.Zero(t, status, stderr)
	require.Equal(t, "options of Redis that have no effect here: hz\n"+good+": the configuration is good\n", stdout)

	status, _, stderr = check(good, "--dir", dir, "--user", "default", "on")
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "command line: user default: Duplicate user found")
	require.Contains(t, stderr, ": 1 fault\n")
	status, _, stderr = check(file("open.conf", "# all\nbind 10.0.0.1\n"))
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "open.conf:2: bind 10.0.0.1 lets other machines in without a password")
	status, _, stderr = check(file("tls.conf", "tls-port 1\ntls-cert-file /nonexistent.crt\ntls-key-file /nonexistent.key\nadmin-port 2\nadmin-bind 10.0.0.1\n"))
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "/nonexistent.crt")
	require.Contains(t, stderr, "admin-bind 10.0.0.1 lets other machines in without a password")
	twice := file("twice.conf", "port 7000\n\nadmin-port 7000\n")
	status, _, stderr = check(twice)
	require.Equal(t, 1, status)
	require.Equal(t, "cellserver: "+twice+":3: admin-port 7000 is the port of option \"port\" as well, at 127.0.0.1\n"+twice+": 1 fault\n", stderr)
	status, stdout, stderr = check("--", good, "--dir", dir)
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, good+": the configuration is good\n")
	file("-odd.conf", "timeout 5\n")
	t.Chdir(dir)
	status, stdout, stderr = check("--", "-odd.conf")
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "-odd.conf: the configuration is good\n")
	status, _, stderr = check("--")
	require.Equal(t, 1, status)
	require.Contains(t, stderr, checkConfigUsage)
	status, _, stderr = check(filepath.Join(dir, "nosuch.conf"))
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "no such file")
	status, _, stderr = check()
	require.Equal(t, 1, status)
	require.Contains(t, stderr, checkConfigUsage)
}
