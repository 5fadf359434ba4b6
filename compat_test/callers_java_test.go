//go:build real

package compat_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/compat_test/clients/process"
)

// javaProject is a project that has nothing but the dependency of the README of clients/java.
const javaProject = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>empty</groupId>
  <artifactId>empty</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>DEPENDENCY</dependencies>
</project>`

// TestJavaPackage builds and tests clients/java without a network, and installs its artifacts into the local repository. Some of
// the tests start servers. Then the first example of its README is compiled and run in an empty project, whose dependency
// is that of the README.
func TestJavaPackage(t *testing.T) {
	if testing.Short() {
		t.Skip("the packages for callers are left to the full test run")
	}
	dir, err := filepath.Abs(filepath.Join("..", "clients", "java"))
	require.NoError(t, err)
	poms, err := filepath.Glob(filepath.Join(dir, "*", "pom.xml"))
	require.NoError(t, err)
	inputs := []string{"install.sh", "pom.xml"}
	for _, pom := range poms {
		inputs = append(inputs, filepath.Join(filepath.Base(filepath.Dir(pom)), "pom.xml"))
	}
	needs(t, "Java package", dir, []string{"javac", "mvn"}, filepath.Join("target", ".installed"), inputs)
	server, err := process.Command("..", t.TempDir())
	require.NoError(t, err)
	run := func(t *testing.T, dir, name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "CELL_SERVER_CMD="+strings.Join(server, " "))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	if !t.Run("tests", func(t *testing.T) { run(t, dir, "mvn", "-B", "-q", "-o", "install") }) {
		return
	}

	t.Run("example", func(t *testing.T) {
		readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
		require.NoError(t, err)
		block := func(language string) string {
			_, after, found := bytes.Cut(readme, []byte("```"+language+"\n"))
			require.True(t, found)
			text, _, found := bytes.Cut(after, []byte("```"))
			require.True(t, found)
			return string(text)
		}
		const address = "redis://localhost:6379"
		const option = ".onUnavailable("
		started := startServer(t, server)
		example := block("java")
		for text, replaced := range map[string]string{
			address: "redis://" + started.Addr,
			// A busy machine may need more than 50 ms for the first calls of a program.
			option: ".deadline(java.time.Duration.ofSeconds(1))" + option,
		} {
			require.Contains(t, example, text)
			example = strings.Replace(example, text, replaced, 1)
		}
		empty := t.TempDir()
		for name, text := range map[string]string{
			"pom.xml":      strings.Replace(javaProject, "DEPENDENCY", block("xml"), 1),
			"Example.java": example,
		} {
			require.NoError(t, os.WriteFile(filepath.Join(empty, name), []byte(text), 0o600))
		}
		run(t, empty, "mvn", "-B", "-q", "-o", "org.apache.maven.plugins:maven-dependency-plugin:3.7.1:build-classpath", "-Dmdep.outputFile=classpath")
		classpath, err := os.ReadFile(filepath.Join(empty, "classpath"))
		require.NoError(t, err)
		run(t, empty, "javac", "-Xlint:all,-path,-classfile", "-Werror", "-d", ".", "-cp", string(classpath), "Example.java")
		out := run(t, empty, "java", "-cp", string(classpath)+string(os.PathListSeparator)+".", "Example")
		require.Contains(t, out, "allowed\nallowed\ndenied: ")
	})
}
