package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rehearsal is the module that does what CONTRIBUTING.md says of new commands and families.
const rehearsal = "../examples/extension"

var rehearsalLink = regexp.MustCompile(`\]\((examples/extension/\S+\.go)\)`)

// howTo returns the sections of CONTRIBUTING.md that the rehearsal follows.
func howTo(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../CONTRIBUTING.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(page), "\n## How to add a command\n")
	require.True(t, found)
	family := strings.Index(rest, "\n## How to add a limiter family\n")
	require.GreaterOrEqual(t, family, 0)
	end := strings.Index(rest[family+1:], "\n## ")
	require.GreaterOrEqual(t, end, 0)
	return rest[:family+1+end]
}

// TestContributingQuotesTheRehearsal: each block of code is in the file that is named before
// it, and each file of the rehearsal is named.
func TestContributingQuotesTheRehearsal(t *testing.T) {
	const indent = "   " // of a block in a list
	file, block, inside, quoted := "", "", false, map[string]bool{}
	for line := range strings.Lines(howTo(t)) {
		bare := strings.TrimSpace(line)
		switch {
		case inside && bare == "```":
			source, err := os.ReadFile(filepath.Join("..", file))
			require.NoError(t, err)
			require.Contains(t, string(source), block, file)
			block, inside, quoted[file] = "", false, true
		case inside:
			block += strings.TrimPrefix(line, indent)
		case bare == "```go":
			require.NotEmpty(t, file, "a link to the file comes first")
			inside = true
		default:
			if link := rehearsalLink.FindStringSubmatch(line); link != nil {
				file = link[1]
			}
		}
	}
	require.NoError(t, filepath.WalkDir(rehearsal, func(name string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") {
			require.True(t, quoted[strings.TrimPrefix(filepath.ToSlash(name), "../")], "CONTRIBUTING.md does not quote %s", name)
		}
		return err
	}))
}

// TestContributingQuotesTests: each block of code in the section about tests is in the file that
// the last link before it names.
func TestContributingQuotesTests(t *testing.T) {
	page, err := os.ReadFile("../CONTRIBUTING.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## Tests\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	quoted := 0
	for i, part := range strings.Split(section, "\n```go\n") {
		if i > 0 {
			block, _, _ := strings.Cut(part, "```\n")
			links := testLink.FindAllStringSubmatch(strings.Split(section, "\n```go\n"+block)[0], -1)
			require.NotEmpty(t, links, "a link to the file comes first")
			file := links[len(links)-1][1]
			source, err := os.ReadFile(filepath.Join("..", file))
			require.NoError(t, err)
			require.Contains(t, string(source), "\n"+block, file)
			quoted++
		}
	}
	require.GreaterOrEqual(t, quoted, 5, "an example of each layer")
}

var testLink = regexp.MustCompile(`\]\((\S+_test\.go)\)`)

// TestEveryFolderIsNamed: ARCHITECTURE.md names each folder at the top that has Go files in or below
// it. A test of internal/architecture checks that docs/packages.md lists each package.
func TestEveryFolderIsNamed(t *testing.T) {
	page, err := os.ReadFile("../ARCHITECTURE.md")
	require.NoError(t, err)
	named := map[string]bool{}
	require.NoError(t, filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == ".." {
			return err
		}
		base := filepath.Base(name)
		if d.IsDir() && (base == "testdata" || base == "node_modules" || strings.HasPrefix(base, ".")) {
			return filepath.SkipDir
		}
		top, below, _ := strings.Cut(strings.TrimPrefix(filepath.ToSlash(name), "../"), "/")
		if below != "" && filepath.Ext(name) == ".go" && !named[top] {
			require.Regexp(t, `(?m)\b`+regexp.QuoteMeta(top)+`\b`, string(page))
			named[top] = true
		}
		return nil
	}))
	require.Greater(t, len(named), 40)
}

// TestReadmeListsEveryPage of the folder docs and of docs/operations. Those about one language
// or format are listed where they belong.
func TestReadmeListsEveryPage(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	for _, pattern := range []string{"*.md", "operations/*.md"} {
		pages, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, pages)
		for _, page := range pages {
			require.Regexp(t, `\]\(docs/`+regexp.QuoteMeta(filepath.ToSlash(page))+`[)#]`, string(readme))
		}
	}
}
