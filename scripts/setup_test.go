// Package scripts_test checks the scripts that people run first.
package scripts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// machine is a machine on which scripts/ci-setup.sh runs: a copy of what it reads, and
// programs that only write down how they were called.
type machine struct {
	root, bin, calls string
}

// newMachine returns a machine with the programs of every system, apt-get, and some more.
func newMachine(t *testing.T, uid string, more ...string) *machine {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("SKIP: no bash")
	}
	root := t.TempDir()
	m := &machine{root: filepath.Join(root, "project"), bin: filepath.Join(root, "bin"), calls: filepath.Join(root, "calls")}
	require.NoError(t, os.MkdirAll(m.bin, 0o755))
	for _, name := range []string{"bash", "cat", "chmod", "dirname", "find", "mkdir", "rm", "sed", "sleep", "touch"} {
		program, err := exec.LookPath(name)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(program, filepath.Join(m.bin, name)))
	}
	m.program(t, bash, "id", "echo "+uid)
	for _, name := range append([]string{"apt-get"}, more...) {
		m.program(t, bash, name, `mkdir -p node_modules; echo "`+name+` $*" >>"`+m.calls+`"`)
	}
	for _, tree := range []string{"scripts/ci-setup.sh", "compat_test/clients", "compat_test/libraries"} {
		m.copyTracked(t, tree)
	}
	return m
}

func (m *machine) program(t *testing.T, bash, name, body string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(m.bin, name), []byte("#!"+bash+"\n"+body+"\n"), 0o755))
}

// copyTracked copies the scripts and pins of a folder, and nothing that was installed.
func (m *machine) copyTracked(t *testing.T, tree string) {
	t.Helper()
	from := filepath.Join("..", filepath.FromSlash(tree))
	require.NoError(t, filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		require.NoError(t, err)
		if d.Name() == "target" || d.Name() == "node_modules" || d.Name() == ".venv" {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			return nil
		}
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		to := filepath.Join(m.root, strings.TrimPrefix(path, ".."))
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
		return os.WriteFile(to, content, 0o644)
	}))
}

// setup runs the script without a terminal and returns what it said, and what it called.
func (m *machine) setup(t *testing.T, env ...string) (said, called string, err error) {
	t.Helper()
	require.NoError(t, os.RemoveAll(m.calls))
	cmd := exec.CommandContext(t.Context(), filepath.Join(m.bin, "bash"), filepath.Join(m.root, "scripts", "ci-setup.sh"))
	cmd.Env = append(env, "PATH="+m.bin, "HOME="+m.root, "POLICY_RC_D="+filepath.Join(m.root, "policy"))
	out, err := cmd.CombinedOutput()
	calls, readErr := os.ReadFile(m.calls)
	if !os.IsNotExist(readErr) {
		require.NoError(t, readErr)
	}
	return string(out), string(calls), err
}

// TestSetupSaysBeforehandWhatItInstallsAndHowLarge: names and sizes come before the first
// thing is installed, and nothing is said of what is there already.
func TestSetupSaysBeforehandWhatItInstallsAndHowLarge(t *testing.T) {
	m := newMachine(t, "1000", "npm", "node")
	said, called, err := m.setup(t)
	require.NoError(t, err, said)
	announced, _, found := strings.Cut(said, "installing the Node clients")
	require.True(t, found, said)
	for _, line := range []string{"30 MB  the Python client 8", "25 MB  the Node clients", "MB  Debian packages: redis-tools", " MB in all"} {
		require.Contains(t, announced, line)
	}
	require.Equal(t, 2, strings.Count(called, "npm ci"), called)

	said, called, err = m.setup(t)
	require.NoError(t, err, said)
	require.NotContains(t, said, "the Node clients", "what is there is neither announced nor installed again")
	require.NotContains(t, called, "npm")
}

// TestSetupAsksForWhatNeedsRoot: nobody's system is changed unless they agree, which a
// terminal or CI=true can; the others are told the one command.
func TestSetupAsksForWhatNeedsRoot(t *testing.T) {
	const command = "apt-get install -y --no-install-recommends redis-tools redis-server"
	for name, c := range map[string]struct {
		uid, env, says string
		installs       bool
	}{
		"a user":                  {"1000", "CI=", "    sudo " + command, false},
		"root without a terminal": {"0", "CI=", "    " + command, false},
		"a user in CI":            {"1000", "CI=true", "    sudo " + command, false},
		"root in CI":              {"0", "CI=true", "installing redis-tools redis-server", true},
	} {
		t.Run(name, func(t *testing.T) {
			said, called, err := newMachine(t, c.uid).setup(t, c.env)
			require.Contains(t, said, c.says)
			require.Equal(t, c.installs, strings.Contains(called, "install"), called)
			require.Equal(t, c.env == "CI=true", err != nil, "what cannot be had fails in CI alone: %s", said)
		})
	}
}
