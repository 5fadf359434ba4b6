//go:build real

package docs_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// runSnippet turns a snippet into a program that prints whether the call was limited, and
// says how to run it in dir, which is empty.
type runSnippet func(t *testing.T, dir, code string) []string

// TestSnippets runs what the pages show in each language. Only the port is changed, and a
// line is added that prints the result: the first call is admitted, and a call after the
// limit is used up is limited.
func TestSnippets(t *testing.T) {
	if testing.Short() {
		t.Skip("programs in other languages are left to the full test run")
	}
	runs := map[string]runSnippet{
		"Python (redis-py)": pythonSnippet, "Java (Jedis)": javaSnippet, "Java (Lettuce)": javaSnippet,
		"Node (ioredis)": ioredisSnippet, "node-redis": nodeRedisSnippet, "Go (go-redis)": goSnippet,
		"Ruby (redis-rb)": rubySnippet,
	}
	for _, s := range readSnippets(t) {
		if s.language == "" || s.language == "replies" {
			continue // TestShellCommands and TestReplies play them
		}
		run := runs[s.title]
		require.NotNil(t, run, "nothing runs what is shown under %q", s.title)
		delete(runs, s.title)
		t.Run(s.title, func(t *testing.T) {
			addr := inproc.Start(t, midnight).Addr().String()
			_, port, err := net.SplitHostPort(addr)
			require.NoError(t, err)
			code := strings.ReplaceAll(s.code, "6379", port)
			command := run(t, t.TempDir(), code)
			require.Equal(t, "admitted", runProgram(t, command, port))
			client := redis.NewClient(&redis.Options{Addr: addr})
			require.NoError(t, client.Do(t.Context(), "CL.THROTTLE", "user123", 15, 30, 60, 15).Err())
			require.NoError(t, client.Close())
			require.Equal(t, "limited", runProgram(t, command, port))
		})
	}
	require.Empty(t, runs, "the pages no longer show what is run here")
}

// runProgram returns what a program prints.
func runProgram(t *testing.T, command []string, port string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), programTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "PORT="+port, "PYTHONDONTWRITEBYTECODE=1")
	var errors strings.Builder
	cmd.Stderr = &errors
	got, err := cmd.Output()
	require.NoError(t, err, errors.String())
	return strings.TrimSpace(string(got))
}

// written puts a file into dir and returns its name.
func written(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// pythonSnippet: the code raises an error that says when to come back.
func pythonSnippet(t *testing.T, dir, code string) []string {
	written(t, dir, "snippet.py", code)
	file := written(t, dir, "main.py", `import runpy
try:
    runpy.run_path(__file__.replace("main.py", "snippet.py"))
    print("admitted")
except RuntimeError as why:
    assert str(why) == "slow down, try again in 2 s", why
    print("limited")
`)
	return append(interpreter(t, "x.py")[:1], file)
}

// javaSnippet: the statements go into a method, with the imports before.
func javaSnippet(t *testing.T, dir, code string) []string {
	var imports, body strings.Builder
	for line := range strings.Lines(code) {
		switch {
		case strings.HasPrefix(line, "import "):
			imports.WriteString(line)
		default:
			body.WriteString(line)
		}
		if strings.HasPrefix(strings.TrimSpace(line), "boolean limited = ") {
			body.WriteString("System.out.println(limited ? \"limited\" : \"admitted\");\nSystem.exit(0);\n")
		}
	}
	file := written(t, dir, "Snippet.java", imports.String()+
		"class Snippet {\npublic static void main(String[] args) throws Exception {\n"+body.String()+"}\n}\n")
	command := interpreter(t, "x.java")
	command[len(command)-1] = file
	return command
}

// nodeModule makes a package that the tests of real clients use importable in dir.
func nodeModule(t *testing.T, dir, name, as string) {
	t.Helper()
	modules := filepath.Join("..", "compat_test", "clients", "node", "node_modules")
	installed(t, filepath.Join(modules, ".installed"))
	library, err := filepath.Abs(filepath.Join(modules, name))
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "node_modules"), 0o700))
	require.NoError(t, os.Symlink(library, filepath.Join(dir, "node_modules", as)))
}

const printJS = "\nconsole.log(limited ? \"limited\" : \"admitted\");\nprocess.exit(0);\n"

func ioredisSnippet(t *testing.T, dir, code string) []string {
	nodeModule(t, dir, "ioredis6", "ioredis")
	return []string{"node", written(t, dir, "snippet.mjs", code+printJS)}
}

// nodeRedisSnippet: the code is a call of a client that there is.
func nodeRedisSnippet(t *testing.T, dir, code string) []string {
	nodeModule(t, dir, "redis6", "redis")
	return []string{"node", written(t, dir, "snippet.mjs", `import { createClient } from "redis";
const client = await createClient({ url: "redis://127.0.0.1:" + process.env.PORT }).connect();
const [limited] = `+code+";"+printJS)}
}

// rubySnippet: the code leaves limited, which is 0 or 1.
func rubySnippet(t *testing.T, dir, code string) []string {
	installed(t, filepath.Join("..", "compat_test", "libraries", "ruby", "target", ".installed"))
	return []string{"ruby", written(t, dir, "snippet.rb", code+"\nputs limited == 1 ? \"limited\" : \"admitted\"\n")}
}

// goSnippet: the statements go into a program of this module, which has the client.
func goSnippet(t *testing.T, dir, code string) []string {
	file := written(t, dir, "main.go", `package main

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

func main() {
	ctx := context.Background()
`+code+`
	fmt.Println(map[bool]string{true: "limited", false: "admitted"}[limited])
}
`)
	binary := filepath.Join(dir, "snippet")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, file).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return []string{binary}
}
