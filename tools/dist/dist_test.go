package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"debug/pe"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	date = "1767225600" // 2026-01-01
	tags = "grpcnotrace"
)

// made makes the archives of platforms from the tree at root and returns their directory.
func made(t *testing.T, root, platforms string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	require.NoError(t, run(t.Context(), []string{"-root", root, "-out", out, "-date", date, "-tags", tags, "-platforms", platforms}))
	return out
}

// unpacked returns the files of an archive by their names without the directory.
func unpacked(t *testing.T, path string) map[string][]byte {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	files := map[string][]byte{}
	add := func(name string, r io.Reader) {
		_, inside, found := strings.Cut(name, "/")
		require.True(t, found, name)
		files[inside], err = io.ReadAll(r)
		require.NoError(t, err)
	}
	if strings.HasSuffix(path, ".zip") {
		z, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
		require.NoError(t, err)
		for _, f := range z.File {
			r, err := f.Open()
			require.NoError(t, err)
			add(f.Name, r)
		}
		return files
	}
	gz, err := gzip.NewReader(bytes.NewReader(content))
	require.NoError(t, err)
	for r := tar.NewReader(gz); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		require.NoError(t, err)
		add(h.Name, r)
	}
}

// TestArchives makes archives and checks their content. Then it makes them again in another
// directory without the build cache.
func TestArchives(t *testing.T) {
	out := made(t, "../..", "linux/amd64 windows/arm64")
	linux := unpacked(t, filepath.Join(out, only(t, out, "cellserver-*-linux-amd64.tar.gz")))
	windows := unpacked(t, filepath.Join(out, only(t, out, "cellserver-*-windows-arm64.zip")))
	bench := unpacked(t, filepath.Join(out, only(t, out, "cellbench-*-linux-amd64.tar.gz")))

	t.Run("programs are static", func(t *testing.T) {
		for _, content := range [][]byte{linux["cellserver"], bench["cellbench"]} {
			program, err := elf.NewFile(bytes.NewReader(content))
			require.NoError(t, err)
			libraries, err := program.ImportedLibraries()
			require.NoError(t, err)
			require.Empty(t, libraries)
		}
		other, err := pe.NewFile(bytes.NewReader(windows["cellserver.exe"]))
		require.NoError(t, err)
		require.EqualValues(t, pe.IMAGE_FILE_MACHINE_ARM64, other.Machine)
	})
	t.Run("what goes along", func(t *testing.T) {
		for name, says := range map[string]string{
			"LICENSE": "MIT License", "README.md": "# cellserver", "cellserver.conf": "\nport 6379\n", "cellserver.service": "[Service]",
			"cellserver.1": `.TH CELLSERVER 1 "2026-01-01"`, "completions/_cellserver": "#compdef cellserver",
			"completions/cellserver.bash": "complete ", "completions/cellserver.fish": "complete -c cellserver",
			"licences/stdlib/LICENSE": "Redistribution and use", "licences/github.com/tidwall/redcon/LICENSE": "Permission",
		} {
			require.Contains(t, string(linux[name]), says, name)
			require.Equal(t, string(linux[name]), string(windows[name]), name)
		}
	})
	t.Run("cellbench has an archive of its own", func(t *testing.T) {
		require.NotContains(t, linux, "cellbench")
		require.NotContains(t, bench, "cellserver")
		require.Contains(t, string(bench["LICENSE"]), "MIT License")
		require.Contains(t, string(bench["cellbench.md"]), "# cellbench")
		require.Contains(t, bench, "licences/gonum.org/v1/plot/LICENSE")
		require.Contains(t, bench, "licences/github.com/golang/freetype/licenses/ftl.txt")
		require.Contains(t, string(bench["cellbench.md"]), "the FreeType Team", "its licence asks for that")
		require.NotContains(t, linux, "licences/gonum.org/v1/plot/LICENSE", "what draws charts does not reach the server")
		require.Contains(t, unpacked(t, filepath.Join(out, only(t, out, "cellbench-*-windows-arm64.zip"))), "cellbench.exe")
	})
	t.Run("every module has a licence", func(t *testing.T) {
		licensed(t, out, "cellserver", linux)
		licensed(t, out, "cellbench", bench)
	})
	t.Run("checksums", func(t *testing.T) {
		cmd := exec.Command("sha256sum", "--check", "--strict", sumsName)
		cmd.Dir = out
		said, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", said)
		require.Equal(t, 8, strings.Count(string(said), ": OK\n"), "%s", said)
	})
	t.Run("bill of materials", func(t *testing.T) { judged(t, out) })
	t.Run("same again", func(t *testing.T) {
		t.Setenv("GOCACHE", t.TempDir())
		t.Setenv("TZ", "Asia/Tokyo")
		again := made(t, copied(t), "linux/amd64")
		for _, name := range all(t, again) {
			if name == sumsName {
				continue // it has the sums of both platforms
			}
			first, err := os.ReadFile(filepath.Join(out, name))
			require.NoError(t, err)
			second, err := os.ReadFile(filepath.Join(again, name))
			require.NoError(t, err)
			require.True(t, bytes.Equal(first, second), "%s differs", name)
		}
		require.Len(t, all(t, again), 5)
		require.Equal(t, sums(t, again), sums(t, made(t, "../..", "linux/amd64")))
	})
}

// licensed checks that each module of a program is in its bill of materials with a licence, and
// that the licence's text is in its archive.
func licensed(t *testing.T, out, name string, files map[string][]byte) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(out, only(t, out, name+"-*-linux-amd64.spdx.json")))
	require.NoError(t, err)
	var bill spdxDocument
	require.NoError(t, json.Unmarshal(text, &bill))
	listed := map[string]bool{}
	for _, p := range bill.Packages {
		listed[p.Name+" "+p.Version] = true
		require.NotEqual(t, unknown, p.Declared, p.Name)
		if p.Purpose != "LIBRARY" {
			continue
		}
		found := false
		for name := range files {
			found = found || strings.HasPrefix(name, "licences/"+p.Name+"/")
		}
		require.True(t, found, "no licence of %s", p.Name)
	}
	program := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(program, files[name], 0o600))
	said, err := exec.Command("go", "version", "-m", program).Output()
	require.NoError(t, err)
	require.Contains(t, string(said), "-tags="+tags+"\n")
	deps := 0
	for line := range strings.Lines(string(said)) {
		if words := strings.Fields(line); len(words) > 2 && words[0] == "dep" && words[1] != ownModule {
			require.True(t, listed[words[1]+" "+words[2]], line)
			deps++
		}
	}
	require.Len(t, bill.Packages, deps+2)
}

// judged validates the bills with the tools of SPDX. Without the tools it prints one SKIP line, or
// fails if CI=true, like internal/programs. It does not use that package, which would bring all
// dependencies of the server into this module.
func judged(t *testing.T, out string) {
	t.Helper()
	tool, err := filepath.Abs("spdx/.venv/bin/pyspdxtools")
	require.NoError(t, err)
	if _, err := os.Stat(tool); err != nil {
		require.NotEqual(t, "true", os.Getenv("CI"), "no pyspdxtools: CI has to have it (make setup)")
		t.Skip("SKIP: no pyspdxtools (make setup installs it)")
	}
	bills, err := filepath.Glob(filepath.Join(out, "*.spdx.json"))
	require.NoError(t, err)
	require.Len(t, bills, 4)
	for _, name := range bills {
		said, err := exec.Command(tool, "-i", name).CombinedOutput()
		require.NoError(t, err, "%s", said)
	}
}

// TestUnknownLicenceStopsARelease: a release fails if a module has no known licence.
func TestUnknownLicenceStopsARelease(t *testing.T) {
	dir := t.TempDir()
	m := module{path: "example.org/m", version: "v1.0.0"}
	require.ErrorContains(t, m.readLicences(dir), "no known licence in example.org/m v1.0.0")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "LICENSE"), []byte("Ask me.\n"), 0o600))
	require.ErrorContains(t, m.readLicences(dir), "no known licence")
	mit, err := os.ReadFile("../../LICENSE")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "COPYING"), mit, 0o600))
	require.NoError(t, m.readLicences(dir))
	require.Equal(t, "MIT", m.licence)
}

// TestFolderOfSomebodyElseIsNotEmptied: a wrong -out does not delete other files.
func TestFolderOfSomebodyElseIsNotEmptied(t *testing.T) {
	dir := t.TempDir()
	theirs := filepath.Join(dir, "thesis.txt")
	require.NoError(t, os.WriteFile(theirs, nil, 0o600))
	r := release{out: dir}
	require.ErrorContains(t, r.empty(), "thesis.txt")
	require.FileExists(t, theirs)
}

// only returns the only file that matches a pattern.
func only(t *testing.T, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	require.NoError(t, err)
	require.Len(t, found, 1)
	return filepath.Base(found[0])
}

func sums(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, sumsName))
	require.NoError(t, err)
	return string(text)
}

func all(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// copied returns a copy of the project's files in another directory.
func copied(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = "../.."
	said, err := cmd.Output()
	require.NoError(t, err)
	to := filepath.Join(t.TempDir(), "elsewhere")
	for _, name := range strings.Split(strings.TrimSuffix(string(said), "\x00"), "\x00") {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755))
		if target, err := os.Readlink(filepath.Join("../..", name)); err == nil {
			require.NoError(t, os.Symlink(target, filepath.Join(to, name)))
			continue
		}
		content, err := os.ReadFile(filepath.Join("../..", name))
		if os.IsNotExist(err) {
			continue // deleted, and not yet committed
		}
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(to, name), content, 0o644))
	}
	return to
}
