package commands

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryWriterCountsErrors: all code that creates a writer sets what counts its errors. The
// exceptions write no errors, or only parts of a reply.
func TestEveryWriterCountsErrors(t *testing.T) {
	none := map[string]string{
		"rlInfo": "fields", "confirm": "acknowledgements", "ScanElements": "elements", "redirectBroken": "a push", "scanStep": "keys", "writeScan": "keys", "allKeys": "keys", "Keep": "what is the same for all",
		"replacePending": "counts them itself, whether they are written or not",
		"open":           "refuses a connection, which rejected_connections counts",
		"ExplainTLS":     "answers who has sent no command",
	}
	files, err := filepath.Glob("*/*.go")
	require.NoError(t, err)
	of, err := filepath.Glob("../session/*.go")
	require.NoError(t, err)
	require.NotEmpty(t, of)
	for _, f := range append(files, of...) {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f, nil, 0)
		require.NoError(t, err)
		for _, d := range parsed.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				if uncounted(n) {
					if none[fn.Name.Name] == "" {
						t.Errorf("%s: a writer in %s has no OnError", f, fn.Name.Name)
					}
				}
				return true
			})
		}
	}
}

// uncounted reports whether n creates a writer whose errors are not counted.
func uncounted(n ast.Node) bool {
	isWriter := func(e ast.Expr) bool {
		sel, ok := e.(*ast.SelectorExpr)
		return ok && sel.Sel.Name == "Writer"
	}
	switch n := n.(type) {
	case *ast.ValueSpec:
		return isWriter(n.Type)
	case *ast.CompositeLit:
		if !isWriter(n.Type) {
			return false
		}
		for _, e := range n.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok && kv.Key.(*ast.Ident).Name == "OnError" {
				return false
			}
		}
		return true
	}
	return false
}
