//go:build real

package scripts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/programs"
)

// TestPackageVersion checks tags of packages whose folders have versions and changelogs of their own.
func TestPackageVersion(t *testing.T) {
	bash := programs.Find(t, "bash")
	root := t.TempDir()
	for name, content := range map[string]string{
		"clients/python/src/cellserver_client/__init__.py": "__version__ = \"0.2.0\"\n",
		"clients/python/CHANGELOG.md":                      "# Changelog\n\n## 0.2.0 - 2026-12-01\n\n## 0.1.0\n",
		"clients/node/package.json":                        "{\n  \"version\": \"0.3.0\",\n  \"license\": \"MIT\"\n}\n",
		"clients/node/CHANGELOG.md":                        "# Changelog\n\n## Unreleased\n",
		"clients/go/CHANGELOG.md":                          "# Changelog\n\n## [1.0.0]\n",
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	script, err := os.ReadFile("package-version.sh")
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(root, "scripts"), 0o755))
	copied := filepath.Join(root, "scripts", "package-version.sh")
	require.NoError(t, os.WriteFile(copied, script, 0o755))

	for tag, says := range map[string]string{
		"clients/python/v0.2.0":     "clients/python\n",
		"clients/go/v1.0.0":         "clients/go\n",
		"clients/python/v0.1.0":     "clients/python states version 0.2.0, not 0.1.0\n",
		"clients/node/v0.3.0":       "clients/node/CHANGELOG.md has no section for 0.3.0\n",
		"clients/go/v1.0.1":         "clients/go/CHANGELOG.md has no section for 1.0.1\n",
		"v0.2.0":                    "'v0.2.0' is not a tag of a package, such as clients/python/v0.2.0\n",
		"clients/python/v0.2.0;ls":  "'clients/python/v0.2.0;ls' is not a tag of a package, such as clients/python/v0.2.0\n",
		"clients/../x/v0.2.0":       "'clients/../x/v0.2.0' is not a tag of a package, such as clients/python/v0.2.0\n",
		"clients/python/v0.2.0-rc1": "'clients/python/v0.2.0-rc1' is not a tag of a package, such as clients/python/v0.2.0\n",
	} {
		out, err := exec.Command(bash, copied, tag).CombinedOutput()
		require.Equal(t, says, string(out))
		require.Equal(t, says == "clients/python\n" || says == "clients/go\n", err == nil, tag)
	}
}

// TestPackageBuild checks the arguments of what builds a package.
func TestPackageBuild(t *testing.T) {
	bash := programs.Find(t, "bash")
	for args, says := range map[string]string{
		"":                "usage: package-build.sh clients/LANGUAGE DIRECTORY\n",
		"clients/go":      "usage: package-build.sh clients/LANGUAGE DIRECTORY\n",
		"clients/cobol %": "'clients/cobol' is not a package for callers\n",
		"clients/go %":    "",
	} {
		fields := strings.Fields(strings.ReplaceAll(args, "%", t.TempDir()))
		out, err := exec.Command(bash, append([]string{"package-build.sh"}, fields...)...).CombinedOutput()
		require.Equal(t, says, string(out))
		require.Equal(t, says == "", err == nil, args)
	}
}

// TestActionsArePinned: a tag of an action can be moved to other code, a commit cannot.
func TestActionsArePinned(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", ".github", "workflows", "*.yml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	uses, pinned := regexp.MustCompile(`uses: .*`), regexp.MustCompile(`^uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, use := range uses.FindAllString(string(text), -1) {
			require.Regexp(t, pinned, use, file)
		}
	}
}
