package architecture

import (
	"fmt"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Package describes a folder with Go files.
type Package struct {
	// Folder is the path of the folder, relative to the module.
	Folder string
	// Name is the name in the package clause. It ends in _test if the folder has only external
	// tests.
	Name string
	// Comment is the first sentence of the package comment, or "". Where is the file and the line
	// of the comment, or of the package clause if there is no comment.
	Comment, Where string
	// Imports are the folders of this module whose packages the production files import, sorted.
	Imports []string
	// Tests says that the folder has only test files.
	Tests bool
}

// Packages returns the description of every package below root, in the order of their folders. It
// leaves out the same folders as [Check].
func Packages(root fs.FS) ([]Package, error) {
	folders := map[string]*Package{}
	err := Walk(root, func(name string, source []byte) error {
		dir := path.Dir(name)
		if folders[dir] == nil {
			folders[dir] = &Package{Folder: dir, Tests: true}
		}
		return folders[dir].read(name, source)
	})
	if err != nil {
		return nil, err
	}
	var all []Package
	for _, dir := range slices.Sorted(maps.Keys(folders)) {
		p := folders[dir]
		slices.Sort(p.Imports)
		p.Imports = slices.Compact(p.Imports)
		all = append(all, *p)
	}
	return all, nil
}

// read adds the file called name to p. If the folder has production files, test files have no
// effect; otherwise the package comment may be in a test file.
func (p *Package) read(name string, source []byte) error {
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, name, source, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return fmt.Errorf("parsing source: %w", err)
	}
	test := strings.HasSuffix(name, "_test.go")
	if test && !p.Tests {
		return nil
	}
	if !test && p.Tests {
		*p = Package{Folder: p.Folder}
	}
	if p.Comment == "" {
		p.Name, p.Where = tree.Name.Name, fmt.Sprintf("%s:%d", name, files.Position(tree.Package).Line)
		if tree.Doc != nil {
			p.Comment = new(doc.Package).Synopsis(tree.Doc.Text())
			p.Where = fmt.Sprintf("%s:%d", name, files.Position(tree.Doc.Pos()).Line)
		}
	}
	for _, spec := range tree.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("reading import path: %w", err)
		}
		if own, ok := strings.CutPrefix(imported, module+"/"); ok && !test {
			p.Imports = append(p.Imports, own)
		}
	}
	return nil
}

// title returns the words with which the package comment must begin: "Package" and the name or, for
// a program, "Command" and the last element of the folder.
func (p Package) title() string {
	if p.Name == "main" {
		return "Command " + path.Base(p.Folder) + " "
	}
	return "Package " + p.Name + " "
}

// longestComment is the maximum number of characters in the first sentence of a package comment. A
// longer sentence has more than one thought.
const longestComment = 120

// CheckComments returns a violation for each package without a comment, and for each whose comment
// does not begin with its title or has a first sentence that is too long.
func CheckComments(packages []Package) (found []Violation) {
	for _, p := range packages {
		what := ""
		switch {
		case p.Comment == "":
			what = "package " + p.Name + " has no comment"
		case !strings.HasPrefix(p.Comment, p.title()):
			what = fmt.Sprintf("the package comment begins with %.30q and not with %q", p.Comment, p.title())
		case len([]rune(p.Comment)) > longestComment:
			what = fmt.Sprintf("the first sentence of the package comment has %d characters, more than %d", len([]rune(p.Comment)), longestComment)
		default:
			continue
		}
		found = append(found, Violation{
			Where: p.Where, What: what,
			Why: "docs/packages.md lists packages by these sentences, and godoc does",
		})
	}
	return found
}

// Modules returns the packages of the modules below root that have a go.mod of their own, which
// [Check] leaves out. Their folders are relative to root.
func Modules(root fs.FS) (all []Package, err error) {
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() || name == "." {
			return err
		}
		if _, none := fs.Stat(root, path.Join(name, "go.mod")); none != nil {
			return skip(root, name)
		}
		below, err := fs.Sub(root, name)
		if err != nil {
			return fmt.Errorf("opening a module: %w", err)
		}
		packages, err := Packages(below)
		for _, p := range packages {
			p.Folder = path.Join(name, p.Folder)
			all = append(all, p)
		}
		return err
	})
	return all, err
}

// program is the folder of the program whose imports make up the server.
const program = "cmd/cellserver"

// reached returns the folder from, and all folders that its package imports, directly or
// indirectly.
func reached(packages []Package, from string) map[string]bool {
	imports := map[string][]string{}
	for _, p := range packages {
		imports[p.Folder] = p.Imports
	}
	found := map[string]bool{}
	var visit func(folder string)
	visit = func(folder string) {
		if !found[folder] {
			found[folder] = true
			for _, next := range imports[folder] {
				visit(next)
			}
		}
	}
	visit(from)
	return found
}

// PackagesPage returns the text of docs/packages.md. It has a line for each package, with the first
// sentence of the package comment. modules are the packages of other modules.
func PackagesPage(packages, modules []Package) string {
	var b strings.Builder
	b.WriteString(`# Packages

<!-- Generated by "make generate" from the package comments and the imports: change them there. -->

Each line has the first sentence of a package comment, and the packages of this module that the
production files of the folder import. [ARCHITECTURE.md](../ARCHITECTURE.md) has the picture.
`)
	server := reached(packages, program)
	var inside, outside []Package
	for _, p := range packages {
		if server[p.Folder] {
			inside = append(inside, p)
		} else {
			outside = append(outside, p)
		}
	}
	section(&b, "The server", "The program `"+program+"` consists of these packages.", inside)
	section(&b, "Tools, tests and examples", "The server imports none of these packages.", outside)
	section(&b, "Other modules", "These folders belong to modules with a go.mod of their own, so that the dependencies of the\nmodules do not reach the server.", modules)
	return b.String()
}

// section writes a section with a table of the packages to b. It leaves out packages without a
// comment.
func section(b *strings.Builder, title, text string, packages []Package) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n| folder | what it is | imports of ours |\n|---|---|---|\n", title, text)
	for _, p := range packages {
		if p.Comment != "" {
			p.line(b)
		}
	}
}

// line writes the row of the package in the table: the first sentence of its comment, without the
// title, and its imports.
func (p Package) line(b *strings.Builder) {
	sentence := strings.TrimPrefix(p.Comment, p.title())
	sentence = strings.NewReplacer("|", `\|`, "[", "", "]", "").Replace(sentence)
	imports := ""
	if len(p.Imports) > 0 {
		imports = "`" + strings.Join(p.Imports, "` `") + "`"
	}
	fmt.Fprintf(b, "| `%s` | %s | %s |\n", p.Folder, sentence, imports)
}
