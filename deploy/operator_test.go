//go:build real

package deploy_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/programs"
)

// operator types what the pages say, on a machine of which only a folder is
// there: paths of the pages are below it, and systemctl starts what the unit says.
type operator struct {
	t      *testing.T
	root   string
	socket string
}

// systemctl does as much of systemd as the pages need. The server is detached from the test and
// found by its pidfile.
const systemctl = `#!/bin/bash
set -eu
pid=$ROOT/pid
stop() {
  [ -e "$pid" ] || return 0
  kill "$(cat "$pid")"
  while kill -0 "$(cat "$pid")" 2>/dev/null; do sleep 0.01; done
  rm "$pid"
}
start() {
  read -r -a command < <(sed -n 's/^ExecStart=//p' "$ROOT/etc/systemd/system/cellserver.service")
  command=("${command[@]/#\//$ROOT/}")
  "${command[@]}" --port 0 --unixsocket "$SOCKET" 2>>"$ROOT/log" </dev/null >/dev/null &
  echo $! >"$pid"
  until redis-cli ping 2>/dev/null | grep -q PONG; do sleep 0.01; kill -0 $!; done
}
case "$*" in
daemon-reload) ;;
"enable --now cellserver" | "start cellserver") start ;;
"stop cellserver") stop ;;
"restart cellserver") stop && start ;;
*) echo "unknown: systemctl $*" >&2; exit 1 ;;
esac
`

func newOperator(t *testing.T) *operator {
	t.Helper()
	needs(t, "make", "bash")
	root := t.TempDir()
	o := &operator{t, root, filepath.Join(root, "s")}
	for _, dir := range []string{"bin", "usr/bin", "var/lib/cellserver", "archive/completions"} {
		require.NoError(t, os.MkdirAll(filepath.Join(o.root, dir), 0o755))
	}
	client := programs.Find(t, "redis-cli")
	o.file("bin/systemctl", systemctl)
	o.file("bin/redis-cli", "#!/bin/bash\nexec "+client+" -s \"$SOCKET\" \"$@\"\n")
	content, err := os.ReadFile(program(t))
	require.NoError(t, err)
	o.file("archive/cellserver", string(content))
	unit, err := os.ReadFile(unitFile)
	require.NoError(t, err)
	o.file("archive/cellserver.service", string(unit))
	o.file("archive/cellserver.1", must(t, ".", program(t), "man"))
	o.file("archive/completions/cellserver.bash", must(t, ".", program(t), "completion", "bash"))
	t.Cleanup(func() { o.types("systemctl stop cellserver") })
	return o
}

func (o *operator) file(name, content string) {
	o.t.Helper()
	require.NoError(o.t, os.WriteFile(filepath.Join(o.root, name), []byte(content), 0o755))
}

// ourPaths are the places that the pages name.
var ourPaths = regexp.MustCompile(`(^|[\s=])/(usr|etc|var)/`)

// types has bash run lines in the folder of the archive, and returns what they print. Any line
// that fails ends them.
func (o *operator) types(lines string) string {
	o.t.Helper()
	lines = ourPaths.ReplaceAllString(lines, "${1}"+o.root+"/$2/")
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", lines)
	cmd.Dir = filepath.Join(o.root, "archive")
	cmd.Env = append(os.Environ(), "ROOT="+o.root, "SOCKET="+o.socket,
		"PATH="+filepath.Join(o.root, "bin")+":"+filepath.Join(o.root, "usr", "bin")+":"+os.Getenv("PATH"))
	said, err := cmd.CombinedOutput()
	log, _ := os.ReadFile(filepath.Join(o.root, "log")) // there is none before the start
	require.NoError(o.t, err, "%s\n%s\n%s", lines, said, log)
	return string(said)
}

// remaining calls a limit of ten and returns what may still pass.
func (o *operator) remaining() string {
	o.t.Helper()
	return strings.Fields(o.types("redis-cli CL.THROTTLE user123 9 10 86400"))[2]
}

// blocks returns the blocks of a page in a language, and checks their least number.
func blocks(t *testing.T, page, language string, least int) (found []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "operations", page))
	require.NoError(t, err)
	for _, b := range regexp.MustCompile("(?s)\n```"+language+"\n(.*?)\n```\n").FindAllStringSubmatch(string(text), -1) {
		found = append(found, b[1])
	}
	require.GreaterOrEqual(t, len(found), least, "the page lost its examples")
	return found
}

// TestOperatorInstallsBacksUpRestoresAndUpgrades does what the pages say, one after the other.
// A limit that was used up after the backup is restored to what it was, and an upgrade forgets
// nothing.
func TestOperatorInstallsBacksUpRestoresAndUpgrades(t *testing.T) {
	o := newOperator(t)
	o.types(blocks(t, "systemd.md", "sh", 1)[0])
	backup := blocks(t, "backup.md", "sh", 2)
	require.Equal(t, "9", o.remaining())
	o.types(backup[0])
	require.Equal(t, "8", o.remaining())
	o.types(backup[0]) // a backup replaces the one before
	for want := 7; want >= 0; want-- {
		require.Equal(t, fmt.Sprint(want), o.remaining())
	}
	o.types(backup[1])
	require.Equal(t, "7", o.remaining(), "what was used after the backup is forgotten")
	require.Equal(t, "6", o.remaining())

	said := o.types(blocks(t, "upgrade.md", "sh", 1)[0])
	require.Contains(t, said, "cellserver_version:")
	require.Equal(t, "5", o.remaining(), "an upgrade forgets nothing")
}

// TestBackupOfABusyServerIsWhole copies the files several times while clients call: each copy is
// a state that the server had.
func TestBackupOfABusyServerIsWhole(t *testing.T) {
	o := newOperator(t)
	o.types(blocks(t, "systemd.md", "sh", 1)[0])
	load := exec.Command("redis-benchmark", "-s", o.socket, "-n", "10000000", "-r", "100000", "-q", "CL.THROTTLE", "k__rand_int__", "9", "10", "86400")
	needs(t, "redis-benchmark")
	require.NoError(t, load.Start())
	t.Cleanup(func() {
		_ = load.Process.Kill() // it may have ended
		_ = load.Wait()
	})
	for range 3 {
		o.types(blocks(t, "backup.md", "sh", 2)[0])
		require.NotEmpty(t, o.types("cellserver dump /var/backups/cellserver | head -n 1 || [ $? = 141 ]"))
	}
}
