package config_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cellserver/cellserver/config"
	"github.com/stretchr/testify/require"
)

// values returns every option of c.
func values(c *config.Config) map[string]string {
	all := make(map[string]string)
	for _, p := range c.Get(func(string) bool { return true }) {
		all[p[0]] = p[1]
	}
	return all
}

// value returns one option of c.
func value(t *testing.T, c *config.Config, name string) string {
	t.Helper()
	v, ok := values(c)[name]
	require.True(t, ok, name)
	return v
}

// writeConfig writes a configuration file and returns its path.
func writeConfig(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cellserver.conf")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// TestOptionEdges: which values each kind of option accepts, how it normalises them, and which it
// refuses.
func TestOptionEdges(t *testing.T) {
	const refused = "\x00"
	for name, edges := range map[string][][2]string{
		"port":               {{"0", "0"}, {"1", "1"}, {"65535", "65535"}, {"65536", refused}, {"-1", refused}, {"", refused}, {"x", refused}, {"6379.5", refused}, {"0x10", refused}, {"9223372036854775808", refused}},
		"tcp-backlog":        {{"0", refused}, {"511", "511"}, {"65536", refused}},
		"databases":          {{"1", "1"}, {"16", "16"}, {"0", refused}, {"17", refused}},
		"maxclients":         {{"1", "1"}, {"0", refused}, {"1048576", "1048576"}, {"1048577", refused}},
		"timeout":            {{"0", "0"}, {"2147483647", "2147483647"}, {"2147483648", refused}, {"-1", refused}, {"1.5", refused}},
		"partial-timeout":    {{"0", refused}, {"1", "1"}},
		"auth-timeout":       {{"0", refused}, {"1", "1"}},
		"write-timeout":      {{"0", refused}, {"3600", "3600"}, {"3601", refused}},
		"shutdown-timeout":   {{"0", refused}, {"1", "1"}},
		"io-threads":         {{"0", "0"}, {"128", "128"}, {"129", refused}},
		"unixsocketperm":     {{"700", "700"}, {"0", "0"}, {"777", "777"}, {"778", refused}, {"1000", refused}, {"", refused}, {"rwx", refused}, {"-7", refused}},
		"protected-mode":     {{"yes", "yes"}, {"NO", "no"}, {"true", refused}, {"1", refused}, {"", refused}},
		"proto-max-bulk-len": {{"1024", "1024"}, {"1kb", "1024"}, {"1KB", "1024"}, {"2k", "2000"}, {"1mb", "1048576"}, {"512mb", "536870912"}, {"513mb", refused}, {"1023", refused}, {"1023b", refused}, {"-1", refused}, {"", refused}, {"mb", refused}, {"1 mb", refused}, {"9223372036854775807gb", refused}},
		"maxmemory":          {{"0", "0"}, {"1gb", "1073741824"}, {"1g", "1000000000"}, {"1125899906842625", refused}},
		"maxmemory-clients":  {{"0", "0"}, {"1mb", "1048576"}, {"5%", "5%"}, {"100%", "100%"}, {"101%", refused}, {"-1", refused}, {"-1%", refused}, {"5.5%", refused}, {"%", refused}, {"1mb%", refused}, {"", refused}},
		"transport":          {{"goroutine", "goroutine"}, {"EPOLL", "epoll"}, {"auto", "auto"}, {"kqueue", refused}, {"", refused}},
		"loglevel":           {{"debug", "debug"}, {"WARNING", "warning"}, {"error", refused}},
		"requirepass":        {{"", ""}, {"a b", "a b"}, {"ü\xff", "ü\xff"}, {"a\nb", refused}, {"a\x00", refused}},
		"bind":               {{"127.0.0.1", "127.0.0.1"}, {" 127.0.0.1   -::1 ", "127.0.0.1 -::1"}, {"127.0.0.1\n", refused}},
		"maxmemory-policy":   {{"noeviction", "noeviction"}, {"allkeys-lru", refused}},
		"save":               {{"", ""}, {"3600 1", "3600 1"}, {"3600", refused}, {"0 1", refused}, {"1 x", refused}},
		"appendonly":         {{"no", "no"}, {"yes", "yes"}, {"maybe", refused}},
		"sw-log-max-entries": {{"1", "1"}, {"0", refused}, {"16777217", refused}},
		"cc-max-members":     {{"1", "1"}, {"0", refused}},
		"store":              {{"", ""}, {"valkey://a,b:7000", "valkey://a,b:7000"}, {"a:6379", refused}, {"http://a", refused}, {"redis://", refused}, {"redis://a/3", refused}},
		"store-prefix":       {{"cs:", "cs:"}, {"", refused}, {"a{b", refused}, {"}", refused}, {strings.Repeat("p", 64), strings.Repeat("p", 64)}, {strings.Repeat("p", 65), refused}, {"a\nb", refused}},
		"store-timeout":      {{"1", "1"}, {"60000", "60000"}, {"0", refused}, {"60001", refused}},
		"store-servers":      {{"1", "1"}, {"0", refused}, {"AUTO", "auto"}, {"many", refused}},
		"store-max-value":    {{"64kb", "65536"}, {"1kb", "1024"}, {"1023", refused}, {"17mb", refused}},
		"store-max-skew":     {{"1", "1"}, {"0", refused}},
		"hot-lease":          {{"1", "1"}, {"10000", "10000"}, {"0", refused}, {"10001", refused}},
		"denial-cache":       {{"0", "0"}, {"60000", "60000"}, {"60001", refused}, {"-1", refused}},
		"multi-across-slots": {{"charge", "charge"}, {"REFUSE", "refuse"}, {"", refused}},
		"fail-policy":        {{"open", "open"}, {"", "closed"}, {"api: OPEN", "closed api: open"}, {"local api: open login: closed", "local api: open login: closed"}, {"api: open local", "local api: open"}, {"api:", refused}, {"api: ajar", refused}, {"open closed", refused}, {"a open a closed", refused}},
		"hot-keys":           {{"lease", "lease"}, {"tenant: lease", "exact tenant: lease"}, {"tenant: leased", refused}},
	} {
		for _, edge := range edges {
			c, err := config.Load([]string{"--" + name + "=" + edge[0]}, nil)
			if edge[1] == refused {
				require.ErrorContains(t, err, `command line: option "`+name+`": `, "%s %q", name, edge[0])
				require.ErrorContains(t, err, "argument", "%s %q", name, edge[0])
				continue
			}
			require.NoError(t, err, "%s %q", name, edge[0])
			require.Equal(t, edge[1], value(t, c, name), "%q", edge[0])
		}
	}
}

// TestPrecedence: flags override the environment, which overrides the file, which overrides the
// defaults.
func TestPrecedence(t *testing.T) {
	path := writeConfig(t, "port 1001\ntimeout 11\nmaxclients 101\nTIMEOUT 12\n")
	env := []string{"PATH=/bin", "CELLSERVER_PORT=1002", "CELLSERVER_TIMEOUT=22", "CELLSERVER_PROTO_MAX_BULK_LEN=2mb", "cellserver_port=9"}
	c, err := config.Load([]string{path, "--port", "1003", "--Bind", "127.0.0.1", "-::1", "--requirepass="}, env)
	require.NoError(t, err)
	got := values(c)
	require.Equal(t, "1003", got["port"])
	require.Equal(t, "22", got["timeout"])
	require.Equal(t, "101", got["maxclients"])
	require.Equal(t, "2097152", got["proto-max-bulk-len"])
	require.Equal(t, "127.0.0.1 -::1", got["bind"])
	require.Equal(t, "5", got["write-timeout"])
	require.Equal(t, values(config.Default())["io-threads"], got["io-threads"])
}

// TestFileSyntax is that of redis.conf.
func TestFileSyntax(t *testing.T) {
	c, err := config.Load([]string{writeConfig(t, "# a comment\r\n\r\n   port   7000   \r\nrequirepass \"a \\\"b\\\" \\x41\"\n\tdir '/tmp/a b'\n#port 1\nlogfile \"\"\nbind 127.0.0.1 -::1\nsave 3600 1 60 100")}, nil)
	require.NoError(t, err)
	got := values(c)
	require.Equal(t, "7000", got["port"])
	require.Equal(t, `a "b" A`, got["requirepass"])
	require.Equal(t, "/tmp/a b", got["dir"])
	require.Equal(t, "127.0.0.1 -::1", got["bind"])
	require.Equal(t, "3600 1 60 100", got["save"])
}

// TestEveryFaultAtOnce: one message has all faults with their places, and no value that may be a
// secret.
func TestEveryFaultAtOnce(t *testing.T) {
	path := writeConfig(t, "port x\nnosuch 1\nport\nrequirepass \"unbalanced\ntimeout 1 2\nrequirepass canary canary\nnosuch\nloadmodule\n")
	_, err := config.Load(
		[]string{path, "stray", "--port", "70000", "--nosuch", "1", "--timeout", "--maxclients=1", "2", "--", "--loglevel", "a", "b"},
		[]string{"CELLSERVER_LOGLEVEL=loud", "CELLSERVER_NO_SUCH=1", "CELLSERVER_=1"})
	require.Error(t, err)
	want := []string{
		path + `:1: option "port": argument couldn't be parsed into an integer`,
		path + `:2: unknown option "nosuch"`,
		path + `:3: option "port" lacks its value`,
		path + `:4: unbalanced quotes`,
		path + `:5: option "timeout" takes one value`,
		path + `:6: option "requirepass" takes one value`,
		path + `:7: unknown option "nosuch"`,
		path + `:8: option "loadmodule" lacks its value`,
		`environment variable CELLSERVER_LOGLEVEL: option "loglevel": argument(s) must be one of the following: debug, verbose, notice, warning, nothing`,
		`environment variable CELLSERVER_NO_SUCH: unknown option "no-such"`,
		`environment variable CELLSERVER_: unknown option ""`,
		`command line: "stray" is not a flag`,
		`command line: option "port": argument must be between 0 and 65535 inclusive`,
		`command line: unknown option "nosuch"`,
		`command line: option "timeout" lacks its value`,
		`command line: option "maxclients" has a value too many`,
		`command line: "--" is not a flag`,
		`command line: option "loglevel" takes one value`,
	}
	require.Equal(t, strings.Join(want, "\n"), err.Error())
	require.NotContains(t, err.Error(), "canary")

	_, err = config.Load([]string{filepath.Join(t.TempDir(), "missing.conf"), "--port", "x"}, nil)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, `option "port"`)
}

// TestExposureIsDeliberate: an address that other machines can reach needs a password or an
// explicit protected-mode no.
func TestExposureIsDeliberate(t *testing.T) {
	for _, bind := range []string{"0.0.0.0", "*", "-*", "::", "192.0.2.1", "127.0.0.1 192.0.2.1", "example.com", "-2001:db8::1"} {
		_, err := config.Load([]string{"--bind=" + bind}, nil)
		require.ErrorContains(t, err, "lets other machines in without a password", "%q", bind)
		for _, said := range []string{"--requirepass=x", "--protected-mode=no", "--port=0"} {
			_, err = config.Load([]string{"--bind=" + bind, said}, nil)
			require.NoError(t, err, "%q %s", bind, said)
		}
	}
	for _, bind := range []string{"127.0.0.1", "127.0.0.1 -::1", "127.1.2.3", "localhost", "-::1"} {
		_, err := config.Load([]string{"--bind=" + bind}, nil)
		require.NoError(t, err, bind)
	}
}

// TestSampleIsTheDefaults: the documented sample parses back to the defaults, and names
// every option, as Describe does.
func TestSampleIsTheDefaults(t *testing.T) {
	var sample bytes.Buffer
	require.NoError(t, config.WriteSample(&sample))
	described := make(map[string]bool)
	for _, o := range config.Describe() {
		require.NotEmpty(t, o.Group)
		described[o.Name] = true
	}
	c, err := config.Load([]string{writeConfig(t, sample.String())}, nil)
	require.NoError(t, err)
	want := values(config.Default())
	require.Equal(t, want, values(c))
	for _, name := range config.OptionNames() {
		if name == "lua-time-limit" || strings.HasPrefix(name, "slave") || strings.Contains(name, "-slave") { // an older name of another option
			continue
		}
		require.Contains(t, sample.String(), "\n"+name+" ")
		require.Contains(t, described, name)
	}
}

// FuzzConfigFile: no file makes the parser panic, and the values of an accepted file, written as
// a file, are accepted as the same values.
func FuzzConfigFile(f *testing.F) {
	var sample bytes.Buffer
	require.NoError(f, config.WriteSample(&sample))
	for _, seed := range []string{
		sample.String(), "", "port 1\n", "port\n", "# x", "bind 127.0.0.1 -::1\r\nrequirepass \"a\\x00b\"\n", "requirepass 'it''s'\n", "maxmemory 1gb\nMAXMEMORY 2GB",
		"unixsocketperm 0777\nport 00080\n", "requirepass \"\\\\\\\"\\n\"", "\x00\n\xff 1\n", "save \"\"\nsave\n",
	} {
		f.Add([]byte(seed))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(dir, "fuzz.conf")
		require.NoError(t, os.WriteFile(path, content, 0o600))
		c, err := config.Load([]string{path}, nil)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		var again []string
		for name, v := range values(c) {
			again = append(again, "--"+name+"="+v)
		}
		twice, err := config.Load(again, nil)
		require.NoError(t, err)
		require.Equal(t, values(c), values(twice))
	})
}
