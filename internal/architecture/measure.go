package architecture

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Measure is how large a package is and how its files hang together. Files and
// lines are of all platforms; references are of what Linux builds.
type Measure struct {
	// Package is its folder, relative to the module.
	Package string
	// Files and Lines are its production files.
	Files, Lines         int
	TestFiles, TestLines int
	// Structs are the struct types of its production files, the largest first.
	Structs []Struct
	// References is how many pairs of files there are of which one uses the other.
	References int
	// InCycles is how many of these are between files that use each other.
	InCycles int
	// Upward are those that point up, in the order of files that has fewest.
	Upward []Reference
}

// Struct is a struct type. One without a name is counted under the type or the
// file that it stands in.
type Struct struct {
	Where, Name string
	// Fields counts an embedded type as one.
	Fields int
}

// Measures measures every package under root that has production files. It
// leaves out what [Check] leaves out.
func Measures(root fs.FS) ([]Measure, error) {
	folders := map[string][]string{} // the Go files in each
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return skip(root, name)
		case path.Ext(name) == ".go":
			folders[path.Dir(name)] = append(folders[path.Dir(name)], path.Base(name))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var all []Measure
	for _, dir := range slices.Sorted(maps.Keys(folders)) {
		m, err := measure(root, dir, folders[dir])
		if err != nil {
			return nil, err
		}
		if m.Files > 0 {
			all = append(all, m)
		}
	}
	return all, nil
}

// measure measures the package in folder dir, which has the Go files names.
func measure(root fs.FS, dir string, names []string) (Measure, error) {
	m := Measure{Package: dir}
	var production []string
	for _, name := range names {
		source, err := fs.ReadFile(root, path.Join(dir, name))
		if err != nil {
			return m, fmt.Errorf("reading source: %w", err)
		}
		lines := bytes.Count(source, []byte("\n"))
		if strings.HasSuffix(name, "_test.go") {
			m.TestFiles, m.TestLines = m.TestFiles+1, m.TestLines+lines
			continue
		}
		m.Files, m.Lines = m.Files+1, m.Lines+lines
		production = append(production, name)
		structs, err := structsOf(root, path.Join(dir, name))
		if err != nil {
			return m, fmt.Errorf("parsing source: %w", err)
		}
		m.Structs = append(m.Structs, structs...)
	}
	slices.SortFunc(m.Structs, func(a, b Struct) int {
		return cmp.Or(b.Fields-a.Fields, strings.Compare(a.Name, b.Name))
	})
	files, all, err := references(root, dir, production)
	if err != nil {
		return m, fmt.Errorf("parsing source: %w", err)
	}
	m.References, m.InCycles, m.Upward = len(all), inCycles(files, all), upward(files, all)
	return m, nil
}

// structsOf returns the struct types of a file.
func structsOf(root fs.FS, name string) (all []Struct, err error) {
	fset := token.NewFileSet()
	tree, err := parse(root, fset, name)
	if err != nil {
		return nil, err
	}
	add := func(owner string, n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			if s, ok := n.(*ast.StructType); ok {
				at := fmt.Sprintf("%s:%d", name, fset.Position(s.Pos()).Line)
				all = append(all, Struct{Where: at, Name: owner, Fields: fields(s)})
			}
			return true
		})
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			add(n.Name.Name, n)
			return false
		case *ast.StructType:
			add(path.Base(name), n)
			return false
		}
		return true
	})
	return all, nil
}

// fields counts the fields of a struct; _, which only takes up space, is none.
func fields(s *ast.StructType) (n int) {
	for _, f := range s.Fields.List {
		if len(f.Names) == 0 {
			n++
		}
		for _, name := range f.Names {
			if name.Name != "_" {
				n++
			}
		}
	}
	return n
}

// Table returns the measures as a table in Markdown, the sums in its last line.
func Table(all []Measure) string {
	var b strings.Builder
	b.WriteString("| package | files | lines | test files | test lines | largest struct | references | in cycles | upward |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	sum := Measure{Package: "all"}
	upward := 0
	for _, m := range all {
		largest := ""
		if len(m.Structs) > 0 {
			largest = fmt.Sprintf("%s %d", m.Structs[0].Name, m.Structs[0].Fields)
		}
		m.row(&b, largest, len(m.Upward))
		sum.Files, sum.Lines = sum.Files+m.Files, sum.Lines+m.Lines
		sum.TestFiles, sum.TestLines = sum.TestFiles+m.TestFiles, sum.TestLines+m.TestLines
		sum.References, sum.InCycles = sum.References+m.References, sum.InCycles+m.InCycles
		upward += len(m.Upward)
	}
	sum.row(&b, "", upward)
	return b.String()
}

func (m Measure) row(b *strings.Builder, largest string, upward int) {
	fmt.Fprintf(b, "| %s | %d | %d | %d | %d | %s | %d | %d | %d |\n", m.Package,
		m.Files, m.Lines, m.TestFiles, m.TestLines, largest, m.References, m.InCycles, upward)
}
