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

// Package is what a folder says of itself.
type Package struct {
	// Folder is relative to the module.
	Folder string
	// Name is that of the package clause, with the suffix _test if the folder has only tests.
	Name string
	// Comment is the first sentence of the package comment. Where is the file and line of the comment, or
	// of the package clause if there is none.
	Comment, Where string
	// Imports are the folders of this module that production files import, sorted.
	Imports []string
	// Tests is set if the folder has only test files.
	Tests bool
}

// Packages reads every package below root, in the order of their folders. It leaves out what [Check]
// leaves out.
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

// read adds a file. Production files go before tests, in which a package comment is only looked for
// if there are no others.
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

// title returns how the package comment begins: Package and the name, or Command and the folder.
func (p Package) title() string {
	if p.Name == "main" {
		return "Command " + path.Base(p.Folder) + " "
	}
	return "Package " + p.Name + " "
}

// longestComment is how many characters the first sentence of a package comment may have. A longer
// sentence has more than one thought.
const longestComment = 120

// CheckComments returns the packages without a comment, and those whose comment does not begin as
// godoc shows it, in one short sentence.
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

// Modules reads the packages of the modules below root that have a go.mod of their own. [Check] leaves
// them out.
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

// program is the package whose imports are the server.
const program = "cmd/cellserver"

// reached returns the folders that a package imports, directly or not, and its own.
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

// PackagesPage returns docs/packages.md: a line for each package, as the package says it. modules are
// the packages of other modules.
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

// section writes a table of packages. Packages without a comment are left out.
func section(b *strings.Builder, title, text string, packages []Package) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n| folder | what it is | imports of ours |\n|---|---|---|\n", title, text)
	for _, p := range packages {
		if p.Comment != "" {
			p.line(b)
		}
	}
}

// line writes the row of a package: its sentence without the beginning that all have.
func (p Package) line(b *strings.Builder) {
	sentence := strings.TrimPrefix(p.Comment, p.title())
	sentence = strings.NewReplacer("|", `\|`, "[", "", "]", "").Replace(sentence)
	imports := ""
	if len(p.Imports) > 0 {
		imports = "`" + strings.Join(p.Imports, "` `") + "`"
	}
	fmt.Fprintf(b, "| `%s` | %s | %s |\n", p.Folder, sentence, imports)
}
