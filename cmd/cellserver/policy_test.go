package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/glob"
)

// TestPolicyCheck: a valid file, one with faults, and files that cannot be read.
func TestPolicyCheck(t *testing.T) {
	good := written(t, "policies:\n  api: {limits: [TB 200 100 1], overrides: {acme: {limits: [TB 1 1 1]}, b: {limits: [TB 1 1 1]}}}\n")
	status, stdout, stderr := ran("policy", "check", good)
	require.Zero(t, status, stderr)
	require.Equal(t, good+": ok, 1 policy, 2 overrides\n", stdout)
	require.Empty(t, stderr)

	bad := written(t, "policies:\n  api: {limits: [TB 200 x 1]}\n  \"\\e\":\n    limit: []\n")
	status, stdout, stderr = ran("policy", "check", bad)
	require.Equal(t, 1, status)
	require.Equal(t, bad+`:2: limit "TB 200 x 1": value is not an integer or out of range: count is 'x', must be an integer
`+bad+`:3: limits is missing
`+bad+`:3: the name of a policy has 1 to 64 characters of A-Z, a-z, 0-9, '_', '.' and '-'
`+bad+`:4: unknown field "limit": a policy has comment, ms, shadow, count, key, notify, classes, limits and overrides
`, stdout)
	require.Empty(t, stderr)

	status, stdout, stderr = ran("policy", "check", written(t, strings.Repeat("#", 2<<20)))
	require.Equal(t, 1, status)
	require.Contains(t, stdout, ":1: the text is longer than 1048576 bytes\n")
	require.Empty(t, stderr)
	for want, args := range map[string][]string{
		"no such file or directory":                             {"check", "/nonexistent"},
		"usage: cellserver policy check":                        {},
		"\n       cellserver policy diff":                       {"check"},
		"usage: cellserver policy":                              {"check", good, good},
		`policy: unknown command "chek", did you mean "check"?`: {"chek", good},
		"policy check: unknown option --tsl":                    {"check", good, "--tsl"},
		"usage: cellserver policy ":                             {"check", good, "--tls"},
	} {
		status, stdout, stderr = ran(append([]string{"policy"}, args...)...)
		require.Equal(t, 1, status)
		require.Contains(t, stderr, want)
		require.Empty(t, stdout)
	}
}

// TestPolicyFromOthers: the output is accepted by policy check.
func TestPolicyFromOthers(t *testing.T) {
	envoy := written(t, "domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 5}}]\n")
	status, stdout, stderr := ran("policy", "from-envoy", envoy)
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "#     RL.USE shop.user <user>\n")
	require.Contains(t, stdout, "    limits: [SW 5 86400 FIXED]\n")
	status, stdout, _ = ran("policy", "check", written(t, stdout))
	require.Zero(t, status)
	require.Contains(t, stdout, ": ok, 1 policy, 0 overrides\n")

	limitador := written(t, "- {namespace: shop, max_value: 5, seconds: 60, conditions: [], variables: [user]}\n")
	status, stdout, stderr = ran("policy", "from-limitador", limitador, written(t, "- {namespace: b, max_value: 5, seconds: 60, conditions: [], variables: []}\n"))
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "    limits: [SW 5 60 FIXED ANCHOR FIRST]\n")
	require.Contains(t, stdout, "  b:\n")

	status, stdout, stderr = ran("policy", "from-envoy", limitador)
	require.Equal(t, 1, status)
	require.Empty(t, stdout)
	require.Equal(t, "cellserver: "+limitador+":1: the text must be a mapping, not a list\n", stderr)
}

const policiesThere = `policies:
  api:
    limits: [TB 200 100 1, SW 5 60]
    overrides:
      acme: {limits: [TB 2000 1000 1]}
      "free-*": {limits: [TB 20 10 1]}
      gone: {limits: [TB 1 1 1]}
  old: {limits: [SW 5 60], overrides: {x: {limits: [SW 6 60]}}}
  same: {limits: [SW 5 60]}
  shy: {limits: [SW 5 60], overrides: {x: {limits: [SW 6 60]}}}
`

const policiesWanted = `policies:
  api:
    limits: [TB 300 100 1, SW 5 60]
    overrides:
      acme: {limits: [TB 2000 1000 1]}
      "free-*": {limits: [TB 30 10 1]}
      "free-vip*": {limits: [TB 40 10 1]}
  new: {limits: [SW 5 60]}
  same: {limits: [SW 5 60]}
  shy: {limits: [SW 5 60], shadow: true, overrides: {x: {limits: [SW 6 60]}}}
`

// TestPolicyDiffOfNetworks: a network counts for the longest pattern that contains it, and for patterns of its parts.
func TestPolicyDiffOfNetworks(t *testing.T) {
	on(t, func(t *testing.T, m *machine) {
		const there = `policies:
  api:
    key: IP 24 56
    limits: [SW 5 60]
    overrides: {10.0.0.0/8: {limits: [SW 8 60]}, 10.1.0.0/16: {limits: [SW 16 60]}, "*": {limits: [SW 1 60]}}
  was: {limits: [SW 5 60], overrides: {10.0.0.0/8: {limits: [SW 8 60]}}}
`
		server := m.fakePolicies(t, there, "api:10.0.0.0/24", "api:10.0.0.0/24#2", "api:10.1.0.0/24", "api:11.0.0.0/24", "api:2001:db8::/56", "was:10.0.0.0/24", "was:acme")
		file := written(t, strings.NewReplacer("SW 8 60", "SW 9 60", "SW 1 60", "SW 2 60", "10.1.0.0/16: {limits: [SW 16 60]}", "10.0.0.7: {limits: [SW 16 60]}", "was: {", "was: {key: IP 24 56, ").Replace(there))
		status, stdout, stderr := m.diff(file, "redis://"+server)
		require.Equal(t, 1, status, stderr)
		require.Equal(t, `~ api "*"
    - {limits: [SW 1 60]}
    + {limits: [SW 2 60]}
    2 keys
~ api "10.0.0.0/8"
    - {limits: [SW 8 60]}
    + {limits: [SW 9 60]}
    2 keys
+ api "10.0.0.7/32"
    + {limits: [SW 16 60]}
    1 key
- api "10.1.0.0/16"
    - {limits: [SW 16 60]}
    1 key
~ was
    - {limits: [SW 5 60]}
    + {key: IP 24 56, limits: [SW 5 60]}
    2 keys
~ was "10.0.0.0/8"
    - {limits: [SW 8 60]}
    + {limits: [SW 9 60]}
    1 key
6 changes
`, stdout)
	})
}

// TestPolicyDiff: changes and the numbers of their keys, for few and for many policies, and the
// status.
func TestPolicyDiff(t *testing.T) {
	on(t, func(t *testing.T, m *machine) {
		server := m.fakePolicies(t, policiesThere, "api:acme", "api:acme#2", "api:other", "api:other#2", "api:other2", "api:other#5#", "api:other#5##2", "api:third#2", "api:free-1", "api:free-1#2", "api:free-2",
			"api:free-vip:1", "api:gone", "api:", "api", "api2:x", "old:x", "old:y", "old:z", "same:x", "shy:x", "shy:y", "api#try:other", "new:before")
		file := written(t, policiesWanted)
		status, stdout, stderr := m.diff(file, "redis://"+server)
		require.Equal(t, 1, status, stderr)
		require.Empty(t, stderr)
		require.Equal(t, `~ api
    - {limits: [TB 200 100 1, SW 5 60]}
    + {limits: [TB 300 100 1, SW 5 60]}
    6 keys
~ api "free-*"
    - {limits: [TB 20 10 1]}
    + {limits: [TB 30 10 1]}
    2 keys
+ api "free-vip*"
    + {limits: [TB 40 10 1]}
    1 key
- api gone
    - {limits: [TB 1 1 1]}
    1 key
+ new
    + {limits: [SW 5 60]}
    1 key
- old
    - {limits: [SW 5 60]}
    2 keys
- old x
    - {limits: [SW 6 60]}
    1 key
~ shy
    - {limits: [SW 5 60]}
    + {shadow: true, limits: [SW 5 60]}
    2 keys
8 changes
`, stdout)

		status, stdout, stderr = m.diff(written(t, policiesThere), "redis://"+server)
		require.Zero(t, status, stderr)
		require.Equal(t, "no changes\n", stdout)

		host, port, err := net.SplitHostPort(server)
		require.NoError(t, err)
		few := written(t, strings.Replace(policiesThere, "[TB 2000 1000 1]", "[TB 1 1 1]", 1))
		status, stdout, stderr = m.diff(few, "-h", host, "-p", port)
		require.Equal(t, 1, status, stderr)
		require.Equal(t, "~ api acme\n    - {limits: [TB 2000 1000 1]}\n    + {limits: [TB 1 1 1]}\n    1 key\n1 change\n", stdout)
	})
}

// TestPolicyDiffErrors: errors have a status of their own.
func TestPolicyDiffErrors(t *testing.T) {
	on(t, func(t *testing.T, m *machine) {
		file := written(t, policiesWanted)
		server := m.fakePolicies(t, "nonsense")
		for want, args := range map[string][]string{
			"RL.POLICY DUMP:1: the text must be a mapping":         {file, "redis://" + server},
			"ERR unknown command 'RL.POLICY' (the server has no p": {file, "redis://" + m.fakePolicies(t, "")},
			"nothing listens at this address":                      {file, "redis://127.0.0.1:1"},
			":1: limits is missing":                                {written(t, "policies: {a: {}}"), "redis://" + server},
			"no such file":                                         {"/nonexistent", "redis://" + server},
			"policy diff: usage: cellserver policy diff":           {file},
			"the first argument is not an address":                 {file, "localhost"},
			`unknown option --askpas, did you mean "--askpass"?`:   {file, "--askpas"},
			"a user needs a password":                              {file, "redis://" + server, "--user", "app"},
		} {
			status, stdout, stderr := m.diff(args...)
			require.Equal(t, 2, status, want)
			require.Contains(t, stderr, want)
			require.True(t, strings.HasPrefix(stderr, "cellserver: policy diff: "), stderr)
			require.Empty(t, stdout)
		}
	})
}

// diff runs policy diff on a machine.
func (m *machine) diff(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = report(&errs, (&connectionFlags{dial: m}).policyTool(append([]string{"diff"}, args...), &out))
	return status, out.String(), errs.String()
}

// ran runs the program.
func ran(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = run(args, nil, &out, &errs)
	return status, out.String(), errs.String()
}

// written returns a file with a text.
func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policies.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// fakePolicies is a server with keys that replies to RL.POLICY DUMP and SCAN, which returns some
// keys twice. With an empty dump it has no policies.
func (m *machine) fakePolicies(t *testing.T, dump string, keys ...string) (address string) {
	t.Helper()
	l, _ := m.listen(t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serveFake(c, dump, keys)
		}
	}()
	return l.Addr().String()
}

func serveFake(c net.Conn, dump string, keys []string) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		args, err := readFake(r)
		if err != nil {
			return
		}
		switch name := strings.ToUpper(args[0]); {
		case name == "SCAN":
			answerScan(c, keys, args)
		case name == "RL.POLICY" && dump != "":
			fmt.Fprintf(c, "$%d\r\n%s\r\n", len(dump), dump)
		default:
			fmt.Fprintf(c, "-ERR unknown command '%s'\r\n", name)
		}
	}
}

// answerScan replies to SCAN cursor MATCH pattern COUNT n with five keys per step, one of which it
// repeats.
func answerScan(w io.Writer, keys, args []string) {
	at, _ := strconv.Atoi(args[1])
	end := min(at+5, len(keys))
	next := end
	if next == len(keys) {
		next = 0
	}
	var found []string
	for _, k := range keys[max(0, at-1):end] {
		if glob.Match([]byte(args[3]), []byte(k)) {
			found = append(found, k)
		}
	}
	cursor := strconv.Itoa(next)
	fmt.Fprintf(w, "*2\r\n$%d\r\n%s\r\n*%d\r\n", len(cursor), cursor, len(found))
	for _, k := range found {
		fmt.Fprintf(w, "$%d\r\n%s\r\n", len(k), k)
	}
}

// readFake reads one command.
func readFake(r *bufio.Reader) ([]string, error) {
	var n int
	if _, err := fmt.Fscanf(r, "*%d\r\n", &n); err != nil {
		return nil, err
	}
	args := make([]string, n)
	for i := range args {
		var size int
		if _, err := fmt.Fscanf(r, "$%d\r\n", &size); err != nil {
			return nil, err
		}
		word := make([]byte, size+2)
		if _, err := io.ReadFull(r, word); err != nil {
			return nil, err
		}
		args[i] = string(word[:size])
	}
	return args, nil
}
