package architecture_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/architecture"
)

// TestPagesAreFresh: the generated pages are committed together with the packages that they list.
func TestPagesAreFresh(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	pages, err := architecture.Pages(os.DirFS(root))
	require.NoError(t, err)
	require.Len(t, pages, 2)
	for name, want := range pages {
		got, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err, "make generate writes it")
		require.Equal(t, want, string(got), "%s is stale: make generate", name)
	}
}

// module is a tree of packages, each with the packages that it imports.
func module(packages map[string]string) fstest.MapFS {
	tree := fstest.MapFS{}
	for folder, imports := range packages {
		name := filepath.Base(folder)
		source := "// Package " + name + " is a test: a|b.\npackage " + name + "\n"
		for imported := range strings.FieldsSeq(imports) {
			source += "import _ \"github.com/cellserver/cellserver/" + imported + "\"\n"
		}
		tree[folder+"/a.go"] = &fstest.MapFile{Data: []byte(source)}
	}
	return tree
}

func TestPicture(t *testing.T) {
	tests := map[string]struct {
		tree map[string]string
		want string
	}{
		"rows": {map[string]string{"cmd/cellserver": "top", "top": "middle", "middle": "bottom", "bottom": ""}, `
┌────────────────┐
│ cmd/cellserver │
│ ▼ top          │
└────────────────┘
┌──────────┐
│ top      │
│ ▼ middle │
└──────────┘
┌──────────┐
│ middle   │
│ ▼ bottom │
└──────────┘
┌────────┐
│ bottom │
└────────┘
`},
		"an import that another implies, and a package that the server has not": {
			map[string]string{"cmd/cellserver": "a b", "a": "b", "b": "", "tool": "b"}, `
┌────────────────┐
│ cmd/cellserver │
│ ▼ a            │
└────────────────┘
┌─────┐
│ a   │
│ ▼ b │
└─────┘
┌───┐
│ b │
└───┘
`,
		},
		"packages that import the same, and a folder with parts": {
			map[string]string{"cmd/cellserver": "a b c", "a": "d", "b": "d", "c": "c/x c/y", "c/x": "", "c/y": "d", "d": ""}, `
┌────────────────┐
│ cmd/cellserver │
│ ▼ a, b, c      │
└────────────────┘
┌──────┐ ┌───────┐
│ a, b │ │ c     │
│ ▼ d  │ │   x y │
│      │ │ ▼ d   │
└──────┘ └───────┘
┌───┐
│ d │
└───┘
`,
		},
		"folders that would import each other": {
			map[string]string{"cmd/cellserver": "a", "a": "b", "b": "a/x", "a/x": "", "a/y": ""}, `
┌────────────────┐
│ cmd/cellserver │
│ ▼ a            │
└────────────────┘
┌─────┐
│ a   │
│ ▼ b │
└─────┘
┌───────┐
│ b     │
│ ▼ a/x │
└───────┘
┌─────┐
│ a/x │
└─────┘
`,
		},
		"groups of commands": {
			map[string]string{
				"cmd/cellserver": "commands", "commands": "commands/hashes commands/sets",
				"commands/hashes": "command", "commands/sets": "command", "command": "env", "env": "",
			}, `
┌────────────────┐
│ cmd/cellserver │
│ ▼ commands     │
└────────────────┘
┌─────────────────────┐
│ commands            │
│ ▼ commands (groups) │
└─────────────────────┘
┌───────────────────┐
│ commands (groups) │
│   hashes sets     │
│ ▼ command         │
└───────────────────┘
┌─────────┐
│ command │
│ ▼ env   │
└─────────┘
┌─────┐
│ env │
└─────┘
`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			packages, err := architecture.Packages(module(tt.tree))
			require.NoError(t, err)
			require.Equal(t, strings.TrimPrefix(tt.want, "\n"), architecture.Picture(packages))
		})
	}
}

// TestPictureFits: the picture of the module itself is no wider than a terminal of 100 columns, and
// names every package of the server.
func TestPictureFits(t *testing.T) {
	packages, err := architecture.Packages(os.DirFS(filepath.Join("..", "..")))
	require.NoError(t, err)
	picture := architecture.Picture(packages)
	for line := range strings.Lines(picture) {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 100, line)
	}
	for _, name := range []string{"cmd/cellserver", "server", "session", "keyspace", "limit"} {
		require.Regexp(t, `(?m)^[^▼]*\b`+name+`\b`, picture)
	}
}

func TestWithPicture(t *testing.T) {
	packages, err := architecture.Packages(module(map[string]string{"cmd/cellserver": ""}))
	require.NoError(t, err)
	const begin, end = "<!-- picture: make generate -->\n", "<!-- picture: end -->\n"
	page, err := architecture.WithPicture("above\n"+begin+"old\n"+end+"below\n", packages)
	require.NoError(t, err)
	require.Equal(t, "above\n"+begin+"```\n"+architecture.Picture(packages)+"```\n"+end+"below\n", page)
	for _, page := range []string{"", begin, end, end + begin} {
		_, err := architecture.WithPicture(page, packages)
		require.ErrorContains(t, err, "the page has no lines")
	}
}

func TestPackagesPage(t *testing.T) {
	tree := module(map[string]string{"cmd/cellserver": "a", "a": "b a/x", "b": "", "a/x": "", "tool": "b", "other/part": "a"})
	tree["other/go.mod"] = &fstest.MapFile{Data: []byte("module other\n")}
	tree["a/a_test.go"] = &fstest.MapFile{Data: []byte(`package a_test; import _ "github.com/cellserver/cellserver/tool"`)}
	tree["silent/a.go"] = &fstest.MapFile{Data: []byte("package silent")}
	packages, err := architecture.Packages(tree)
	require.NoError(t, err)
	modules, err := architecture.Modules(tree)
	require.NoError(t, err)
	page := architecture.PackagesPage(packages, modules)
	_, server, _ := strings.Cut(page, "\n## The server\n")
	server, tools, _ := strings.Cut(server, "\n## Tools, tests and examples\n")
	tools, others, _ := strings.Cut(tools, "\n## Other modules\n")
	require.Contains(t, server, "| `a` | is a test: a\\|b. | `a/x` `b` |\n| `a/x` | is a test: a\\|b. |  |\n| `b` |")
	require.Contains(t, server, "| `cmd/cellserver` |")
	require.NotContains(t, server, "tool")
	require.Contains(t, tools, "\n| `tool` | is a test: a\\|b. | `b` |\n")
	require.NotContains(t, tools, "silent")
	require.Contains(t, others, "\n| `other/part` | is a test: a\\|b. | `a` |\n")
}
