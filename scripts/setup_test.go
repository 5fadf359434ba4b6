//go:build real

// Package scripts_test checks the scripts that people run first.
package scripts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/programs"
)

// machine is a machine on which scripts/ci-setup.sh runs: a copy of what it reads, and
// programs that only write down how they were called.
type machine struct {
	root, bin, calls string
}

// archive is where the machine gets Debian's packages from.
const archive = "http://archive.example/debian"

// newMachine returns a machine with the programs of every system, apt-get, and some more.
func newMachine(t *testing.T, uid string, more ...string) *machine {
	t.Helper()
	bash := programs.Find(t, "bash")
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
		m.program(t, bash, name, `[ "$1" != indextargets ] || { echo `+archive+`; exit; }; mkdir -p node_modules; echo "`+name+` $*" >>"`+m.calls+`"`)
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
	cmd.Env = append(env, "PATH="+m.bin, "HOME="+m.root, "POLICY_RC_D="+filepath.Join(m.root, "policy"),
		"SOURCES_D="+m.root, "OS_RELEASE="+filepath.Join(m.root, "os-release"))
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

// TestSetupAsksForWhatNeedsRoot: no system is changed without an agreement, from a
// terminal or by CI=true; without one the script prints the one command.
func TestSetupAsksForWhatNeedsRoot(t *testing.T) {
	const command = "apt-get install -y --no-install-recommends redis-tools redis-server valkey-server"
	for name, c := range map[string]struct {
		uid, env, says string
		installs       bool
	}{
		"a user":                  {"1000", "CI=", "    sudo " + command, false},
		"root without a terminal": {"0", "CI=", "    " + command, false},
		"a user in CI":            {"1000", "CI=true", "    sudo " + command, false},
		"root in CI":              {"0", "CI=true", "installing redis-tools redis-server valkey-server", true},
	} {
		t.Run(name, func(t *testing.T) {
			said, called, err := newMachine(t, c.uid).setup(t, c.env)
			require.Contains(t, said, c.says)
			require.Equal(t, c.installs, strings.Contains(called, "install"), called)
			require.Equal(t, c.env == "CI=true", err != nil, "what cannot be had fails in CI alone: %s", said)
		})
	}
}

// TestSetupFindsValkeyWhereDebianHasIt: Debian 12 has it in backports only, of which apt is
// told by one line, and only after an agreement.
func TestSetupFindsValkeyWhereDebianHasIt(t *testing.T) {
	const line = archive + " bookworm-backports main"
	for name, c := range map[string]struct {
		release, uid, env string
		writes, says      bool
	}{
		"Debian 12 in CI":      {"bookworm", "0", "CI=true", true, true},
		"Debian 12 of a user":  {"bookworm", "1000", "CI=", false, true},
		"another system in CI": {"trixie", "0", "CI=true", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, c.uid)
			require.NoError(t, os.WriteFile(filepath.Join(m.root, "os-release"), []byte("VERSION_CODENAME="+c.release+"\n"), 0o600))
			said, called, _ := m.setup(t, c.env)
			require.Equal(t, c.says, strings.Contains(said, "bookworm-backports"), said)
			written, err := os.ReadFile(filepath.Join(m.root, "bookworm-backports.list"))
			require.Equal(t, c.writes, err == nil)
			require.Equal(t, c.writes, strings.Contains(string(written), line))
			if c.writes {
				require.Contains(t, called, "update")
			} else if c.says {
				require.Contains(t, said, line)
			}
			require.Equal(t, c.uid == "0", strings.Contains(called, "valkey-server"), called)
		})
	}
	m := newMachine(t, "0", "valkey-server")
	said, _, _ := m.setup(t, "CI=")
	require.NotContains(t, said, "valkey", "it is there already")
	m = newMachine(t, "0")
	built := filepath.Join(m.root, "valkey", "src")
	require.NoError(t, os.MkdirAll(built, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(built, "valkey-server"), nil, 0o755))
	said, _, _ = m.setup(t, "CI=", "VALKEY_DIR="+filepath.Dir(built))
	require.NotContains(t, said, "valkey-server", "it was built")
}
