package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Violation is a place in the source that breaks a rule.
type Violation struct {
	// Where is the file and the line, in the form that editors understand, or the package.
	Where string
	// What describes the finding.
	What string
	// Why is the reason of the rule that is broken.
	Why string
}

// String returns the violation on one line.
func (v Violation) String() string { return v.Where + ": " + v.What + ": " + v.Why }

// Check reads every Go file below root, the folder of go.mod, and returns all violations of the
// rules. It leaves out folders with a go.mod of their own, hidden folders, testdata, and the
// folders of package managers.
func Check(root fs.FS) ([]Violation, error) {
	var found []Violation
	places := map[int]bool{}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return skip(root, name)
		case path.Ext(name) != ".go":
			return nil
		}
		violations, err := checkFile(root, name, places)
		found = append(found, violations...)
		return err
	})
	if _, own := fs.Stat(root, "internal/architecture/programs.go"); own == nil {
		found = append(found, unneededPlaces(places)...)
	}
	return found, err
}

// CheckTests reads the tests below root, the folder of another module of this project. It returns a
// violation for each test that starts a program or opens a port without the build tag for that. The
// other rules do not apply to that module.
func CheckTests(root fs.FS) ([]Violation, error) {
	var found []Violation
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return skip(root, name)
		case !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		c, tree, err := parse(root, name)
		if err != nil {
			return err
		}
		c.checkPrograms(tree)
		found = append(found, c.found...)
		return nil
	})
	return found, err
}

func skip(root fs.FS, dir string) error {
	if dir == "." {
		return nil
	}
	base := path.Base(dir)
	if strings.HasPrefix(base, ".") || base == "testdata" || base == "node_modules" || base == "vendor" {
		return fs.SkipDir
	}
	if _, err := fs.Stat(root, path.Join(dir, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

// parse parses the file called name, and returns a checker for it and its syntax tree.
func parse(root fs.FS, name string) (*checker, *ast.File, error) {
	source, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, nil, fmt.Errorf("reading source: %w", err)
	}
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return nil, nil, fmt.Errorf("parsing source: %w", err)
	}
	return &checker{file: name, pkg: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), files: files, places: map[int]bool{}}, tree, nil
}

func checkFile(root fs.FS, name string, places map[int]bool) ([]Violation, error) {
	c, tree, err := parse(root, name)
	if err != nil {
		return nil, err
	}
	c.places = places
	for _, spec := range tree.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("reading import path: %w", err)
		}
		c.checkImport(imported, spec.Pos())
	}
	if !c.test && !hasAnyPrefix(name, clockFiles) {
		c.checkClock(tree)
	}
	if c.test {
		c.checkPrograms(tree)
	} else {
		c.checkFiles(tree)
	}
	return c.found, nil
}

// checker collects the violations of one file.
type checker struct {
	file string
	pkg  string // path of the folder relative to the module
	test bool
	// places has the indexes of the programPlaces that a file needs. All files share the map.
	places map[int]bool
	files  *token.FileSet
	found  []Violation
}

func (c *checker) report(pos token.Pos, what, why string) {
	c.found = append(c.found, Violation{
		Where: fmt.Sprintf("%s:%d", c.file, c.files.Position(pos).Line),
		What:  what,
		Why:   why,
	})
}

func (c *checker) checkImport(imported string, pos token.Pos) {
	if own, ok := strings.CutPrefix(imported, module+"/"); ok {
		c.checkOwn(own, pos)
		return
	}
	for _, e := range externals {
		if !within(imported, e.path) {
			continue
		}
		allowed := e.inTests && c.test || slices.ContainsFunc(e.in, func(dir string) bool { return within(c.pkg, dir) })
		if !allowed {
			c.report(pos, c.pkg+" imports "+imported, e.why)
		}
	}
	if l := layers[c.pkg]; l.pure && !c.test && slices.ContainsFunc(impure, func(p string) bool { return within(imported, p) }) {
		c.report(pos, c.pkg+" imports "+imported, l.why)
	}
}

// checkOwn checks the import, at pos, of a package of this module. own is the folder of the
// package. Tests, and packages below cmd, internal and compat_test, may import every package.
func (c *checker) checkOwn(own string, pos token.Pos) {
	what := c.pkg + " imports " + own
	switch {
	case c.test || within(c.pkg, "cmd") || within(c.pkg, "internal") || within(c.pkg, "compat_test"):
		return
	case within(own, "internal"):
		c.report(pos, what, "internal/ has code that tests share; packages of production code are elsewhere")
	case slices.Contains(groups, own) && c.pkg != "commands" && (within(c.pkg, "commands") || c.pkg == "session"):
		c.report(pos, what, groupWhy)
	default:
		l, known := layerOf(c.pkg)
		if !known {
			c.report(pos, what, c.pkg+" has no place in the import direction yet: give it a row, with its reason, in internal/architecture/layers.go")
		} else if !slices.Contains(l.imports, own) && !(c.pkg == "commands" && slices.Contains(groups, own)) {
			c.report(pos, what, l.why)
		}
	}
}

// layerOf returns the layer of a package. A package below commands has a layer only if it is a
// group or one of groupParts. known is false for a package without a layer.
func layerOf(pkg string) (l layer, known bool) {
	l, known = layers[pkg]
	if !within(pkg, "commands") || pkg == "commands" || slices.Contains(groupParts, pkg) {
		return l, known
	}
	if !slices.Contains(groups, pkg) {
		return layer{}, false
	}
	if !known {
		l = groupLayer
	}
	return l, true
}

// checkClock reports every use of a function of package time that reads the clock, under whatever
// name the file imports the package. In a pure package it also reports uses of timers.
func (c *checker) checkClock(tree *ast.File) {
	name := timeName(tree)
	if name == "" {
		return
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := selector.X.(*ast.Ident); !ok || x.Name != name {
			return true
		}
		forbidden := []string{"Now", "Since", "Until"}
		if layers[c.pkg].pure {
			forbidden = append(forbidden, "After", "AfterFunc", "NewTicker", "NewTimer", "Sleep", "Tick")
		}
		if slices.Contains(forbidden, selector.Sel.Name) {
			c.report(n.Pos(), c.pkg+" calls time."+selector.Sel.Name, clockWhy)
		}
		return true
	})
}

// timeName returns the name by which the file refers to package time, or "" if it does not import
// the package.
func timeName(tree *ast.File) string {
	for _, spec := range tree.Imports {
		if spec.Path.Value != `"time"` {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return "time"
	}
	return ""
}

// within reports whether p is the path dir or a path below it.
func within(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

func hasAnyPrefix(s string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}
