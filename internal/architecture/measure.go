package architecture

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Measure is the size of a package in files and lines. The files for all platforms count.
type Measure struct {
	// Package is the folder of the package, relative to the module.
	Package string
	// Files and Lines are the numbers of production files and of their lines.
	Files, Lines int
	// TestFiles and TestLines are the numbers of test files and of their lines.
	TestFiles, TestLines int
}

// Measures returns the size of every package below root that has production files, in the order of
// their folders. It leaves out the same folders as [Check].
func Measures(root fs.FS) ([]Measure, error) {
	folders := map[string]*Measure{}
	err := Walk(root, func(name string, source []byte) error {
		dir := path.Dir(name)
		if folders[dir] == nil {
			folders[dir] = &Measure{Package: dir}
		}
		folders[dir].add(name, source)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var all []Measure
	for _, dir := range slices.Sorted(maps.Keys(folders)) {
		if m := folders[dir]; m.Files > 0 {
			all = append(all, *m)
		}
	}
	return all, nil
}

// add counts the file called name with the given source.
func (m *Measure) add(name string, source []byte) {
	lines := bytes.Count(source, []byte("\n"))
	if strings.HasSuffix(name, "_test.go") {
		m.TestFiles, m.TestLines = m.TestFiles+1, m.TestLines+lines
		return
	}
	m.Files, m.Lines = m.Files+1, m.Lines+lines
}

// Table returns all measures as a table in Markdown. The last line has the sums.
func Table(all []Measure) string {
	var b strings.Builder
	b.WriteString("| package | files | lines | test files | test lines |\n|---|--:|--:|--:|--:|\n")
	sum := Measure{Package: "all"}
	for _, m := range all {
		m.row(&b)
		sum.Files, sum.Lines = sum.Files+m.Files, sum.Lines+m.Lines
		sum.TestFiles, sum.TestLines = sum.TestFiles+m.TestFiles, sum.TestLines+m.TestLines
	}
	sum.row(&b)
	return b.String()
}

func (m Measure) row(b *strings.Builder) {
	fmt.Fprintf(b, "| %s | %d | %d | %d | %d |\n", m.Package, m.Files, m.Lines, m.TestFiles, m.TestLines)
}
