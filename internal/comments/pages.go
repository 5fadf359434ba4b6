package comments

import (
	"fmt"
	"go/ast"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/cellserver/cellserver/internal/architecture"
)

var (
	codeSpan = regexp.MustCompile("`([^`]+)`")
	goFile   = regexp.MustCompile(`^[\w./-]+\.go$`)
)

// checkPage returns a violation for each code span of a page in Markdown, outside of code blocks,
// that is a Go file or an exported name of the module, but does not exist. A file without a folder
// may be in any folder.
func (x *index) checkPage(root fs.FS, page string) ([]architecture.Violation, error) {
	text, err := fs.ReadFile(root, page)
	if err != nil {
		return nil, fmt.Errorf("reading a page: %w", err)
	}
	var found []architecture.Violation
	number, code := 0, false
	for line := range strings.Lines(string(text)) {
		number++
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
		}
		if code {
			continue
		}
		for _, span := range codeSpan.FindAllStringSubmatch(line, -1) {
			if !x.exists(root, span[1]) {
				found = append(found, architecture.Violation{
					Where: fmt.Sprintf("%s:%d", page, number), What: span[1], Why: "a page names only what exists",
				})
			}
		}
	}
	return found, nil
}

// exists returns false if span is a Go file, or an exported name of a package of the module, that
// does not exist.
func (x *index) exists(root fs.FS, span string) bool {
	if goFile.MatchString(span) {
		if strings.Contains(span, "/") {
			_, err := fs.Stat(root, span)
			return err == nil
		}
		return x.hasFile(span)
	}
	name := dotted.FindString(span)
	if name == "" || !strings.HasPrefix(span, name) {
		return true
	}
	parts := strings.Split(name, ".")
	packages := x.named[parts[0]]
	if len(packages) == 0 || !ast.IsExported(parts[1]) {
		return true
	}
	c := checker{index: x}
	return slices.ContainsFunc(packages, func(p *pkg) bool { return c.has(p, parts[1:]) })
}

// hasFile reports whether any folder of the module has a Go file called name.
func (x *index) hasFile(name string) bool {
	for _, p := range x.packages {
		if slices.ContainsFunc(p.files, func(f *file) bool { return path.Base(f.name) == name }) {
			return true
		}
	}
	return false
}
