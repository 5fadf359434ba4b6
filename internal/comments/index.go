package comments

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cellserver/cellserver/internal/architecture"
)

// index has the declared names of all packages of a module. When a comment refers to a package of
// the standard library, the index gets its names, too.
type index struct {
	module string // import path of the module
	std    fs.FS
	files  *token.FileSet
	// packages has the packages of the module by folder, and standard the packages of the standard
	// library by import path.
	packages, standard map[string]*pkg
	// named has the packages of the module by the last element of their folders.
	named map[string][]*pkg
	// libraries has the import paths outside of the module, by the names by which files refer to
	// them.
	libraries map[string][]string
}

// pkg has the names in a folder: the names of a package and of its tests, in the files for all
// platforms.
type pkg struct {
	dir   string
	names map[string]*entry
	files []*file
	// variables has the fields and variables of the package by name, since a name with a dot in
	// prose may begin with one of them.
	variables map[string][]*entry
}

// file is a parsed file. imports has its import paths, by the names by which it refers to them.
type file struct {
	name    string
	pkg     *pkg
	tree    *ast.File
	imports map[string]string
}

// entry is a declared name. If it is a type, it has members.
type entry struct {
	file *file
	// of is a type expression: for a type its definition, and for a field or a variable its type.
	of      ast.Expr
	members map[string]*entry
	// embedded has the types whose members are also members of this type.
	embedded []ast.Expr
	isType   bool
}

// newIndex returns an index of every Go file of the module in root, with tests.
func newIndex(root, std fs.FS) (*index, error) {
	module, err := moduleOf(root)
	if err != nil {
		return nil, err
	}
	x := &index{
		module: module, std: std, files: token.NewFileSet(),
		packages: map[string]*pkg{}, standard: map[string]*pkg{}, named: map[string][]*pkg{}, libraries: map[string][]string{},
	}
	err = architecture.Walk(root, func(name string, source []byte) error {
		dir := path.Dir(name)
		if x.packages[dir] == nil {
			x.packages[dir] = newPkg(dir)
			x.named[path.Base(dir)] = append(x.named[path.Base(dir)], x.packages[dir])
		}
		return x.add(x.packages[dir], name, source, parser.ParseComments)
	})
	return x, err
}

var moduleLine = regexp.MustCompile(`(?m)^module (\S+)$`)

func moduleOf(root fs.FS) (string, error) {
	source, err := fs.ReadFile(root, "go.mod")
	if err != nil {
		return "", fmt.Errorf("reading the name of the module: %w", err)
	}
	found := moduleLine.FindSubmatch(source)
	if found == nil {
		return "", fmt.Errorf("go.mod has no line with the name of the module")
	}
	return string(found[1]), nil
}

func newPkg(dir string) *pkg {
	return &pkg{dir: dir, names: map[string]*entry{}, variables: map[string][]*entry{}}
}

// add parses the file called name and adds its declarations to p.
func (x *index) add(p *pkg, name string, source []byte, mode parser.Mode) error {
	tree, err := parser.ParseFile(x.files, name, source, mode|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parsing source: %w", err)
	}
	f := &file{name: name, pkg: p, tree: tree, imports: map[string]string{}}
	for _, spec := range tree.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("reading import path: %w", err)
		}
		as := nameOf(imported)
		if spec.Name != nil {
			as = spec.Name.Name
		}
		f.imports[as] = imported
		if mode&parser.ParseComments != 0 && !slices.Contains(x.libraries[as], imported) {
			x.libraries[as] = append(x.libraries[as], imported)
		}
	}
	p.files = append(p.files, f)
	for _, d := range tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			f.addFunc(d)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				f.addSpec(spec)
			}
		}
	}
	return nil
}

var version = regexp.MustCompile(`^v[0-9]+$|\.v[0-9]+$`)

// nameOf guesses the name of the package with the given import path.
func nameOf(imported string) string {
	base := path.Base(imported)
	if version.MatchString(base) && !strings.Contains(base, ".") {
		base = path.Base(path.Dir(imported))
	}
	base = version.ReplaceAllString(base, "")
	return strings.TrimSuffix(strings.TrimPrefix(base, "go-"), "-go")
}

func (f *file) addFunc(d *ast.FuncDecl) {
	if d.Recv == nil {
		f.declare(d.Name.Name)
		return
	}
	if base := typeName(d.Recv.List[0].Type); base != "" {
		f.declare(base).members[d.Name.Name] = &entry{file: f}
	}
}

// declare returns the entry of name in the package. It creates the entry if there is none, as when
// a method comes before its type.
func (f *file) declare(name string) *entry {
	e := f.pkg.names[name]
	if e == nil {
		e = &entry{file: f, members: map[string]*entry{}}
		f.pkg.names[name] = e
	}
	return e
}

func (f *file) addSpec(spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			e := f.declare(name.Name)
			e.of = s.Type
			if s.Type != nil {
				f.addMembers(e, s.Type)
			}
			f.pkg.variables[name.Name] = append(f.pkg.variables[name.Name], &entry{file: f, of: s.Type})
		}
	case *ast.TypeSpec:
		e := f.declare(s.Name.Name)
		e.file, e.of, e.isType = f, s.Type, true
		f.addMembers(e, s.Type)
	}
}

// addMembers adds the fields of a struct and the methods of an interface in expr to e. Fields of
// nameless structs in expr become members of e, too, since prose refers to them in this way.
func (f *file) addMembers(e *entry, expr ast.Expr) {
	ast.Inspect(expr, func(n ast.Node) bool {
		var list *ast.FieldList
		switch n := n.(type) {
		case *ast.StructType:
			list = n.Fields
		case *ast.InterfaceType:
			list = n.Methods
		case *ast.FuncType:
			return false
		default:
			return true
		}
		for _, field := range list.List {
			if len(field.Names) == 0 {
				e.embedded = append(e.embedded, field.Type)
				e.members[typeName(field.Type)] = &entry{file: f, of: field.Type}
			}
			for _, name := range field.Names {
				member := &entry{file: f, of: field.Type}
				e.members[name.Name] = member
				f.pkg.variables[name.Name] = append(f.pkg.variables[name.Name], member)
			}
		}
		return true
	})
}

// typeName returns the last name in a type expression, without its package, pointer and type
// parameters. It returns "" if the type has no name.
func typeName(expr ast.Expr) string {
	switch t := expr.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.StarExpr:
		return typeName(t.X)
	case *ast.ParenExpr:
		return typeName(t.X)
	case *ast.IndexExpr:
		return typeName(t.X)
	case *ast.IndexListExpr:
		return typeName(t.X)
	case *ast.SelectorExpr:
		return t.Sel.Name
	}
	return ""
}

// imported returns the packages to which name may refer in the file f: the package that f imports
// by this name or, if there is none, the packages of the module. known is false for a package of
// another module, whose names are not indexed.
func (x *index) imported(f *file, name string) (found []*pkg, known bool) {
	imported, ok := f.imports[name]
	if !ok {
		found = x.named[name]
		return found, len(found) > 0
	}
	if own := x.own(imported); own != nil {
		return []*pkg{own}, true
	}
	if p := x.library(imported); p != nil {
		return []*pkg{p}, true
	}
	return nil, false
}

// own returns the package of the module with the given import path, or nil.
func (x *index) own(imported string) *pkg {
	if dir, ok := strings.CutPrefix(imported, x.module+"/"); ok {
		return x.packages[dir]
	}
	return nil
}

// library returns the package of the standard library with the given import path, or nil. It parses
// the package when it is first called for it.
func (x *index) library(imported string) *pkg {
	if first, _, _ := strings.Cut(imported, "/"); strings.Contains(first, ".") {
		return nil
	}
	if p, ok := x.standard[imported]; ok {
		return p
	}
	x.standard[imported] = nil
	names, err := fs.ReadDir(x.std, imported)
	if err != nil {
		return nil
	}
	p := newPkg(imported)
	for _, entry := range names {
		name := path.Join(imported, entry.Name())
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := fs.ReadFile(x.std, name)
		if err == nil {
			err = x.add(p, name, source, 0)
		}
		if err != nil {
			return nil
		}
	}
	x.standard[imported] = p
	return p
}

// typeOf returns the declaration of the type that expr names in the file f. It returns nil if the
// type has no name or is not indexed.
func (x *index) typeOf(f *file, expr ast.Expr) *entry {
	switch t := expr.(type) {
	case *ast.StarExpr:
		return x.typeOf(f, t.X)
	case *ast.ParenExpr:
		return x.typeOf(f, t.X)
	case *ast.IndexExpr:
		return x.typeOf(f, t.X)
	case *ast.IndexListExpr:
		return x.typeOf(f, t.X)
	case *ast.Ident:
		if e := f.pkg.names[t.Name]; e != nil && e.isType {
			return e
		}
	case *ast.SelectorExpr:
		name, ok := t.X.(*ast.Ident)
		if !ok {
			return nil
		}
		packages, _ := x.imported(f, name.Name)
		if len(packages) != 1 {
			return nil
		}
		if e := packages[0].names[t.Sel.Name]; e != nil && e.isType {
			return e
		}
	}
	return nil
}

// member returns the member of e called name, which may be a member of an embedded type, or nil.
// depth is the number of embedded types around e. sure is false if the answer is uncertain: e or an
// embedded type is not indexed, or depth exceeds 8.
func (x *index) member(e *entry, name string, depth int) (found *entry, sure bool) {
	if e == nil || depth > 8 {
		return nil, false
	}
	if m := e.members[name]; m != nil {
		return m, true
	}
	sure = true
	below := e.embedded
	switch e.of.(type) {
	case *ast.Ident, *ast.SelectorExpr, *ast.IndexExpr, *ast.IndexListExpr, *ast.StarExpr:
		below = append(below[:len(below):len(below)], e.of)
	}
	for _, expr := range below {
		if isBasic(expr) {
			continue
		}
		m, known := x.member(x.typeOf(e.file, expr), name, depth+1)
		if m != nil {
			return m, true
		}
		sure = sure && known
	}
	return nil, sure
}

// path follows the members names, one after another, from the type e. It returns the first of names
// that is certainly not a member, or "".
func (x *index) path(e *entry, names []string) (missing string) {
	for _, name := range names {
		m, sure := x.member(e, name, 0)
		if m == nil {
			if sure {
				return name
			}
			return ""
		}
		if m.of == nil {
			return ""
		}
		if e = x.typeOf(m.file, m.of); e == nil {
			return ""
		}
	}
	return ""
}

// isBasic reports whether expr is a type of the language, which has no members.
func isBasic(expr ast.Expr) bool {
	name, ok := expr.(*ast.Ident)
	if !ok {
		return false
	}
	switch name.Name {
	case "bool", "byte", "rune", "string", "any", "comparable", "uintptr", "float32", "float64",
		"int", "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64":
		return true
	}
	return false
}
