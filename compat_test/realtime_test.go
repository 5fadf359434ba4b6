//go:build real

package compat_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/freeport"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/programs"
	"github.com/cellserver/cellserver/internal/script"
)

// control is a connection beside those of the scripts, to prepare a server.
type control struct {
	net.Conn
	in *bufio.Reader
}

func newControl(tb testing.TB, dial func() (net.Conn, error)) *control {
	tb.Helper()
	c, err := dial()
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = c.Close() }) // the server may be gone already
	return &control{Conn: c, in: bufio.NewReader(c)}
}

// do runs a command that must not fail.
func (c *control) do(args ...string) (script.Value, error) {
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return script.Value{}, err
	}
	if _, err := c.Write(inproc.Encode(nil, args...)); err != nil {
		return script.Value{}, err
	}
	v, err := script.ReadValue(c.in)
	if err == nil && v.Type == '-' {
		err = fmt.Errorf("%s: %s", args[0], v.Text)
	}
	return v, err
}

func (c *control) must(tb testing.TB, args ...string) script.Value {
	tb.Helper()
	v, err := c.do(args...)
	require.NoError(tb, err)
	return v
}

// put makes keys of other types with the commands that plain Redis has.
func (c *control) put(kind, key, value string, ttl time.Duration) error {
	args := []string{"SET", key, value}
	switch {
	case kind == "list":
		args = []string{"RPUSH", key, "element"}
	case ttl != 0:
		args = append(args, "PX", strconv.FormatInt(ttl.Milliseconds(), 10))
	}
	_, err := c.do(args...)
	return err
}

// serverKind says what a server is, and so which scripts it has to answer.
func (c *control) serverKind(tb testing.TB) string {
	tb.Helper()
	switch {
	case strings.Contains(c.must(tb, "INFO", "server").Text, "\nserver_name:cellserver\r"):
		return "cellserver"
	case strings.Contains(c.must(tb, "MODULE", "LIST").String(), `"redis-cell"`):
		return "redis-cell"
	}
	return "Redis"
}

var infoVersion = regexp.MustCompile(`redis_version:([0-9.]+)`)

// version is the version that clients see.
func (c *control) version(tb testing.TB) string {
	tb.Helper()
	found := infoVersion.FindStringSubmatch(c.must(tb, "INFO", "server").Text)
	require.NotNil(tb, found)
	return found[1]
}

// TestScriptsAgainstAddress plays the scripts against a server that runs at the address
// CELL_ADDR. It must be empty: every section begins with FLUSHALL.
func TestScriptsAgainstAddress(t *testing.T) {
	addr := os.Getenv("CELL_ADDR")
	if addr == "" {
		t.Skip("CELL_ADDR names no server")
	}
	dial := func() (net.Conn, error) { return net.Dial("tcp", addr) }
	c := newControl(t, dial)
	keys := strings.Count(c.must(t, "INFO", "keyspace").Text, "\ndb")
	require.Zero(t, keys, "%s holds keys, which the scripts would delete", addr)
	kind := c.serverKind(t)
	t.Logf("%s is %s", addr, kind)
	target := script.Target{Dial: dial}
	if kind != "cellserver" {
		target.Put = c.put
	}
	playInRealTime(t, kind, c, target, nil)
}

// playInRealTime plays the scripts one after the other. configure sets an option of
// the server for one section; without it sections that need one are left out.
func playInRealTime(t *testing.T, kind string, c *control, target script.Target, configure func(t *testing.T, name, value string)) {
	var known expectedDifferences
	for _, heading := range map[string][]string{"Redis": {"Redis"}, "redis-cell": {"Redis", "redis-cell"}}[kind] {
		known = append(known, readDifferences(t, heading, c.version(t))...)
	}
	for _, s := range loadScripts(t, kind) {
		for _, section := range s.Sections {
			if len(section.Config) > 0 && configure == nil {
				known.leaveOut(s.Name, section.Title)
				continue
			}
			for _, proto := range section.Protocols {
				t.Run(s.Name+"/"+section.RunName(proto), func(t *testing.T) {
					c.must(t, "FLUSHALL")
					for _, option := range section.Config {
						configure(t, option[0], option[1])
					}
					playSection(t, s, section, proto, target, known)
				})
			}
		}
	}
	c.must(t, "FLUSHALL")
	for _, fault := range known.broken() {
		t.Error(fault)
	}
}

// TestScriptsAgainstRedis holds the scripts of plain Redis commands to what they
// claim, that Redis answers so. Without a redis-server of version 7 it is skipped,
// which is a failure in CI.
func TestScriptsAgainstRedis(t *testing.T) {
	version := redisVersion()
	if major, _, _ := strings.Cut(version, "."); major != "7" {
		programs.Missing(t, "no redis-server 7 on the path, but version %q", version)
	}
	dial := startRedis(t)
	c := newControl(t, dial)
	configure := func(t *testing.T, name, value string) {
		before := c.must(t, "CONFIG", "GET", name)
		require.Len(t, before.Elems, 2, "Redis has no option %s", name)
		c.must(t, "CONFIG", "SET", name, value)
		t.Cleanup(func() { c.must(t, "CONFIG", "SET", name, before.Elems[1].Text) })
	}
	playInRealTime(t, "Redis", c, script.Target{Dial: dial, Put: c.put}, configure)
}

var versionPattern = regexp.MustCompile(`v=([0-9.]+)`)

// redisVersion is that of the redis-server on the path, "" without one.
func redisVersion() string {
	out, err := exec.Command("redis-server", "--version").Output()
	if found := versionPattern.FindSubmatch(out); err == nil && found != nil {
		return string(found[1])
	}
	return ""
}

// startRedis runs a redis-server on a port of this machine until the test ends.
func startRedis(t *testing.T) (dial func() (net.Conn, error)) {
	t.Helper()
	port := freeport.Choose()
	command := exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port,
		"--save", "", "--appendonly", "no", "--dir", t.TempDir())
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		require.NoError(t, command.Process.Kill())
		_ = command.Wait() // it was killed
	})
	dial = func() (net.Conn, error) { return net.Dial("tcp", net.JoinHostPort("127.0.0.1", port)) }
	require.Eventually(t, func() bool {
		c, err := dial()
		return err == nil && c.Close() == nil
	}, time.Minute, 10*time.Millisecond, "redis-server does not come up")
	return dial
}
