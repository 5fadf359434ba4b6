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

// Measure is how large a package is, with the files of all platforms.
type Measure struct {
	// Package is its folder, relative to the module.
	Package string
	// Files and Lines are its production files.
	Files, Lines         int
	TestFiles, TestLines int
}

// Measures measures every package under root that has production files. It
// leaves out what [Check] leaves out.
func Measures(root fs.FS) ([]Measure, error) {
	folders := map[string]*Measure{}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return skip(root, name)
		case path.Ext(name) != ".go":
			return nil
		}
		dir := path.Dir(name)
		if folders[dir] == nil {
			folders[dir] = &Measure{Package: dir}
		}
		return folders[dir].add(root, name)
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

// add counts a file.
func (m *Measure) add(root fs.FS, name string) error {
	source, err := fs.ReadFile(root, name)
	if err != nil {
		return fmt.Errorf("reading source: %w", err)
	}
	lines := bytes.Count(source, []byte("\n"))
	if strings.HasSuffix(name, "_test.go") {
		m.TestFiles, m.TestLines = m.TestFiles+1, m.TestLines+lines
		return nil
	}
	m.Files, m.Lines = m.Files+1, m.Lines+lines
	return nil
}

// Table returns the measures as a table in Markdown, the sums in its last line.
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
