//go:build real && unix

package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestKilledServersKeepPolicies: every change that got OK before kill -9 is in force after it, with
// its expiry and its history. check-aof accepts the files, and dump shows their content.
func TestKilledServersKeepPolicies(t *testing.T) {
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(5, 16))
	want := map[string]string{} // the field 2 of RL.USE, by key
	changes := 0
	for round := range 6 {
		p := launch(t, dir, nil, "--appendfsync", []string{"everysec", "always"}[round%2])
		w := dial(t, p.socket, 0)
		do := func(words string) string {
			answers, err := w.do(act{strings.Fields(words)})
			require.NoError(t, err, words)
			return answers[0]
		}
		set := func(words string) {
			require.Equal(t, "OK", do(words), words)
			changes++
		}
		if round == 0 {
			set("RL.POLICY SET api LIMITS SW 10 3600 FIXED")
			set("RL.POLICY SET tried LIMITS TB 5 1 3600")
			set("RL.POLICY TRY tried LIMITS TB 7 1 3600")
			set("RL.OVERRIDE SET api stays LIMITS SW 55 3600 FIXED")
			want["stays"] = "0 55"
		}
		for key, is := range want {
			require.True(t, strings.HasPrefix(do("RL.USE api "+key+" 0"), is+" "), "round %d: %s is not %s", round, key, is)
		}
		require.Contains(t, do("RL.POLICY GET tried"), "TB 7 1 3600")
		require.True(t, strings.HasPrefix(do("RL.CHANGES COUNT 1"), fmt.Sprintf("id %d ", changes)) || round == 0)
		for i := range 40 {
			key := fmt.Sprintf("k%d-%d", round, i)
			limit := 11 + rng.IntN(1000)
			switch i % 4 {
			case 0:
				set(fmt.Sprintf("RL.OVERRIDE SET api %s EX 100000 LIMITS SW %d 3600 FIXED", key, limit))
				want[key] = fmt.Sprint("0 ", limit)
			case 1:
				set(fmt.Sprintf("RL.BOOST api %s %d EX 100000", key, 1+i))
				want[key] = fmt.Sprint("0 ", 10+10*i)
			case 2:
				set(fmt.Sprintf("RL.BLOCK api %s* EX 100000", key))
				want[key] = "1 10"
			default:
				set(fmt.Sprintf("RL.EXEMPT api %s EX 100000", key))
				want[key] = "0 10"
				if last := fmt.Sprintf("k%d-%d", round, i-1); i%8 == 3 {
					require.Equal(t, "1", do("RL.UNBLOCK api "+last+"*"))
					changes++
					want[last] = "0 10"
				}
			}
			if i == 20 && round%3 == 1 {
				do("BGREWRITEAOF")
			}
		}
		p.kill()
		_ = w.c.Close()
	}
	var out, problems bytes.Buffer
	folder := filepath.Join(dir, "appendonlydir")
	require.Zero(t, run([]string{"check-aof", folder}, nil, &out, &problems), problems.String()+out.String())
	out.Reset()
	require.Zero(t, run([]string{"dump", folder}, nil, &out, &problems), problems.String())
	for _, record := range []string{"main/api", "try/tried", "override/api/stays", "block/api/k0-6*", "exempt/api/k5-39", "SW 55 3600 FIXED", "TB 7 1 3600"} {
		require.Contains(t, out.String(), record)
	}
}

// TestPolicyFileOfTheProgram: with an invalid file the program does not start, and reports every
// fault. On SIGHUP it applies a valid file, and otherwise keeps the present policies.
func TestPolicyFileOfTheProgram(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "policies.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	const bad = "policies:\n  api:\n    limits: [SW -1 60]\n    nonsense: 1\n  b:\n    limits: []\n"
	write(bad)
	program := exec.Command(os.Args[0], "--port", "0", "--unixsocket", filepath.Join(dir, "none"), "--dir", dir, "--policy-file", file)
	program.Env = append(os.Environ(), asServer+"=1")
	out, err := program.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, string(out))
	for _, line := range []int{3, 4, 6} {
		require.Contains(t, string(out), fmt.Sprintf("%s:%d: ", file, line))
	}

	limited := func(n int) string { return fmt.Sprintf("policies:\n  api:\n    limits: [SW %d 3600 FIXED]\n", n) }
	write(limited(10))
	p := launch(t, dir, nil, "--policy-file", file)
	w := dial(t, p.socket, 0)
	is := func(want string) bool {
		answers, err := w.do(act{strings.Fields("RL.USE api k 0")})
		require.NoError(t, err)
		return strings.HasPrefix(answers[0], want)
	}
	logged := func(what string) func() bool {
		return func() bool {
			text, err := os.ReadFile(filepath.Join(dir, "log"))
			require.NoError(t, err)
			return strings.Contains(string(text), what)
		}
	}
	require.Eventually(t, func() bool { return is("0 10 ") }, patience, time.Millisecond)
	write(bad)
	require.NoError(t, syscall.Kill(p.pid, syscall.SIGHUP))
	require.Eventually(t, logged("nothing has changed"), patience, time.Millisecond)
	require.Eventually(t, logged(file+":4: "), patience, time.Millisecond)
	require.True(t, is("0 10 "))
	write(limited(20))
	require.NoError(t, syscall.Kill(p.pid, syscall.SIGHUP))
	require.Eventually(t, func() bool { return is("0 20 ") }, patience, time.Millisecond)
	answers, err := w.do(act{{"SET", "k", "v"}}) // its record comes after that of the file, for which there is no reply
	require.NoError(t, err)
	require.Equal(t, []string{"OK"}, answers)
	p.kill()
	p = launch(t, dir, nil)
	w = dial(t, p.socket, 0)
	require.True(t, is("0 20 "), "the log has it")
}
