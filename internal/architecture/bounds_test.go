package architecture_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/architecture"
)

// TestTheTreeIsWithinItsBounds measures the module itself. With -v it prints the
// table that `make architecture` prints.
func TestTheTreeIsWithinItsBounds(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	measures, err := architecture.Measures(os.DirFS(root))
	require.NoError(t, err)
	t.Log("\n" + architecture.Table(measures))

	exceptions, err := architecture.OurExceptions()
	require.NoError(t, err)
	for _, v := range architecture.CheckBounds(measures, exceptions) {
		t.Error(v)
	}
}

// TestBounds shows for each bound what is just within it, what is beyond, and an
// exception that is right, too small and too large.
func TestBounds(t *testing.T) {
	tests := map[string]struct {
		tree       fstest.MapFS
		exceptions string
		want       string // a part of the violation; empty means none
	}{
		"lines":            {lines(4499), "", ""},
		"too many lines":   {lines(4500), "", "lines of p: 4501, at most 4500: nobody reads"},
		"lines excepted":   {lines(4999), "lines p 5000", ""},
		"lines grown":      {lines(5000), "lines p 5000", "lines of p: 5001, at most 5000"},
		"lines reduced":    {lines(4899), "lines p 5000", "lines p: 5000, but 4900 would do: exceptions may only"},
		"lines in tests":   {fstest.MapFS{"p/a_test.go": {Data: []byte("package p\n" + strings.Repeat("\n", 5000))}}, "", ""},
		"no more lines":    {lines(4499), "lines p 4600", "lines p: 4600, but it needs no exception"},
		"files":            {files(35), "", ""},
		"too many files":   {files(36), "", "files of p: 36, at most 35: nobody sees"},
		"files excepted":   {files(37), "files p 37", ""},
		"files grown":      {files(38), "files p 37", "files of p: 38, at most 37"},
		"files reduced":    {files(36), "files p 37", "files p: 37, but 36 would do"},
		"fields":           {fields(24), "", ""},
		"too many fields":  {fields(25), "", "p/a.go:2: fields of p.T: 25, at most 24: a struct with more"},
		"fields excepted":  {fields(26), "fields p.T 26", ""},
		"fields grown":     {fields(27), "fields p.T 26", "fields of p.T: 27, at most 26"},
		"fields reduced":   {fields(25), "fields p.T 26", "fields p.T: 26, but 25 would do"},
		"downward":         {uses("b.go a.go"), "", ""},
		"upward":           {uses("a.go b.go", "b.go a.go"), "", "upward of p: 1, at most 0\n\tb.go uses A of a.go\n: files use"},
		"upward excepted":  {uses("a.go b.go", "b.go a.go"), "upward p 1", ""},
		"upward grown":     {uses("a.go b.go", "b.go a.go", "c.go d.go", "d.go c.go"), "upward p 1", "upward of p: 2, at most 1"},
		"upward reduced":   {uses("a.go b.go", "b.go a.go"), "upward p 2", "upward p: 2, but 1 would do"},
		"package has gone": {files(1), "upward q 2", "upward q: 2, but it needs no exception"},
		"struct has gone":  {files(1), "fields p.T 26", "fields p.T: 26, but it needs no exception"},
		"lines of a merge": {lines(4999), "lines p 5100\nlines p 5000\nlines p 5200", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			measures, err := architecture.Measures(tt.tree)
			require.NoError(t, err)
			exceptions, err := architecture.ReadExceptions(tt.exceptions)
			require.NoError(t, err)
			found := architecture.CheckBounds(measures, exceptions)
			if tt.want == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Contains(t, found[0].String(), tt.want)
		})
	}
}

// TestFieldsAreThoseOfTheStructItself: what counts as a field.
func TestFieldsAreThoseOfTheStructItself(t *testing.T) {
	const source = `package p
type T struct {
	a, b int    // two
	Embedded    // one
	*Other      // one
	_ [8]uint64 // none
	inner struct{ a, b, c, d, e, f int } // one, and a struct of its own
}
var v struct{ x int }
func f() { type local struct{ a, b, c int } }
`
	measures, err := architecture.Measures(fstest.MapFS{"p/a.go": {Data: []byte(source)}})
	require.NoError(t, err)
	require.Len(t, measures, 1)
	var got []string
	for _, s := range measures[0].Structs {
		got = append(got, fmt.Sprintln(s.Where, s.Name, s.Fields))
	}
	require.Equal(t, []string{
		"p/a.go:7 T 6\n", "p/a.go:2 T 5\n", "p/a.go:10 local 3\n", "p/a.go:9 a.go 1\n",
	}, got)
}

// TestExceptionsAreLowered: what `make architecture` writes is what is needed, and
// never more than there was.
func TestExceptionsAreLowered(t *testing.T) {
	old, err := architecture.ReadExceptions("lines p 9000\nfields p.T 25\nfiles gone 40\n")
	require.NoError(t, err)
	tree := lines(4810)
	tree["p/t.go"] = fields(30)["p/a.go"]
	measures, err := architecture.Measures(tree)
	require.NoError(t, err)

	text := old.Lowered(measures).String()
	require.Contains(t, text, "\nfields p.T 25\nlines p 4900\n")
	require.NotContains(t, text, "gone")
	again, err := architecture.ReadExceptions(text)
	require.NoError(t, err)
	require.Equal(t, architecture.Exceptions{"fields p.T": 25, "lines p": 4900}, again)
}

// TestUnreadableExceptions: what is no exception is an error, never ignored.
func TestUnreadableExceptions(t *testing.T) {
	for _, text := range []string{"lines", "lines p", "lines p many", "words p 3", "lines p 3 4"} {
		_, err := architecture.ReadExceptions(text)
		require.ErrorContains(t, err, text)
	}
}

// lines is a package of n lines and one more.
func lines(n int) fstest.MapFS {
	return fstest.MapFS{"p/a.go": {Data: []byte("package p\n" + strings.Repeat("\n", n))}}
}

// files is a package of n files.
func files(n int) fstest.MapFS {
	tree := fstest.MapFS{}
	for i := range n {
		tree[fmt.Sprintf("p/f%d.go", i)] = &fstest.MapFile{Data: []byte("package p\n")}
	}
	return tree
}

// fields is a package with a struct T of n fields.
func fields(n int) fstest.MapFS {
	var source strings.Builder
	source.WriteString("package p\ntype T struct {\n")
	for i := range n {
		fmt.Fprintf(&source, "f%d int\n", i)
	}
	source.WriteString("}\n")
	return fstest.MapFS{"p/a.go": {Data: []byte(source.String())}}
}
