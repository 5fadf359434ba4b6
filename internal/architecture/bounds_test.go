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

// TestTheTreeIsWithinItsBounds measures the module itself. With -v it prints the table of
// `make architecture`.
func TestTheTreeIsWithinItsBounds(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	measures, err := architecture.Measures(os.DirFS(root))
	require.NoError(t, err)
	t.Log("\n" + architecture.Table(measures))
	for _, v := range architecture.CheckOurBounds(measures) {
		t.Error(v)
	}
}

// TestBounds shows for each bound a package just within it, a package that exceeds it, and one with a reason.
func TestBounds(t *testing.T) {
	reason := map[string]string{"p": "one table"}
	tests := map[string]struct {
		tree    fstest.MapFS
		reasons map[string]string
		want    string // a part of the violation; empty means none
	}{
		"lines":              {lines(4499), nil, ""},
		"too many lines":     {lines(4500), nil, "p: 4501 lines, more than 4500: a large package"},
		"lines with a cause": {lines(4500), reason, ""},
		"lines in tests":     {fstest.MapFS{"p/a_test.go": {Data: []byte("package p\n" + strings.Repeat("\n", 5000))}}, nil, ""},
		"files":              {files(35), nil, ""},
		"too many files":     {files(36), nil, "p: 36 files, more than 35"},
		"files with a cause": {files(36), reason, ""},
		"a needless reason":  {files(35), reason, "p: a reason in bounds.go that is not needed"},
		"a package has gone": {files(1), map[string]string{"q": "large"}, "q: a reason"},
		"an empty reason":    {files(36), map[string]string{"p": ""}, "p: 36 files"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			measures, err := architecture.Measures(tt.tree)
			require.NoError(t, err)
			found := architecture.CheckBounds(measures, tt.reasons)
			if tt.want == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Contains(t, found[0].String(), tt.want)
		})
	}
}

// lines returns a package of n+1 lines.
func lines(n int) fstest.MapFS {
	return fstest.MapFS{"p/a.go": {Data: []byte("package p\n" + strings.Repeat("\n", n))}}
}

// files returns a package of n files.
func files(n int) fstest.MapFS {
	tree := fstest.MapFS{}
	for i := range n {
		tree[fmt.Sprintf("p/f%d.go", i)] = &fstest.MapFile{Data: []byte("package p\n")}
	}
	return tree
}
