//go:build real

package compat_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestServerCompilesWithoutEachGroup has every group of commands left out of the list once.
// The list compiles without the group, and nothing that the server consists of imports it: what
// depends on the list sees [commands.Groups] alone, so it need not be compiled again.
func TestServerCompilesWithoutEachGroup(t *testing.T) {
	for _, name := range groupNames(t) {
		t.Run(name, func(t *testing.T) { compileWithout(t, name) })
	}
}

// compileWithout compiles the server with a list that lacks a group.
func compileWithout(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile(groupList)
	require.NoError(t, err)
	var kept []string
	for line := range strings.Lines(string(text)) {
		if s := strings.TrimSpace(line); s != name+".Group()," && !strings.HasSuffix(s, "/commands/"+name+`"`) {
			kept = append(kept, line)
		}
	}
	require.Len(t, kept, strings.Count(string(text), "\n")-2, "its import and its element")
	dir := t.TempDir()
	replaced, overlay := filepath.Join(dir, "groups.go"), filepath.Join(dir, "overlay.json")
	list, err := filepath.Abs(groupList)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(replaced, []byte(strings.Join(kept, "")), 0o600))
	asJSON, err := json.Marshal(map[string]map[string]string{"Replace": {list: replaced}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, asJSON, 0o600))
	said, err := exec.Command("go", "build", "-overlay", overlay, "../commands").CombinedOutput()
	require.NoError(t, err, "%s", said)
	needed, err := exec.Command("go", "list", "-overlay", overlay, "-deps", "../cmd/cellserver").CombinedOutput()
	require.NoError(t, err, "%s", needed)
	require.NotContains(t, string(needed), "/commands/"+name+"\n", "something else imports the group")
}
