package commands

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/resp"
)

// countsOf returns what INFO shows.
func countsOf(s *errorStats) map[string]int64 {
	counts := map[string]int64{}
	s.each(func(word string, count int64) { counts[word] += count })
	return counts
}

func TestErrorWord(t *testing.T) {
	for e, want := range map[resp.Error]string{
		"ERR syntax error": "ERR", "WRONGTYPE Operation": "WRONGTYPE", "": "ERR", " x": "ERR", "alone": "ERR",
		"Cell error: x": "Cell",
		resp.Error(strings.Repeat("a", 30) + " b"):  strings.Repeat("a", 30),
		resp.Error(strings.Repeat("a", 31) + " b"):  "ERR",
		resp.Error(strings.Repeat("a", 1<<20)):      "ERR",
		resp.Error("a\r\nb:c#d ") + "text":          "a\r\nb:c#d",
		resp.Error("\xff\x00 ") + "bytes of nobody": "\xff\x00",
	} {
		require.Equal(t, want, errorWord(e), "%.40q", e)
	}
}

// TestErrorWordsAreBounded: scripts may say what they like, and those words take no more
// room than so many, nor any from the server's own.
func TestErrorWordsAreBounded(t *testing.T) {
	var s errorStats
	for i := range 10_000 {
		s.add(resp.Error(fmt.Sprintf("W%d text", i)), resp.OfScript)
	}
	s.add("OOM command not allowed", resp.OfServer)
	s.add("OOM command not allowed", resp.Repeated)
	s.add("W5 again", resp.OfScript)
	counts := countsOf(&s)
	require.Len(t, counts, maxErrorWords+2)
	require.EqualValues(t, 1, counts["OOM"])
	require.EqualValues(t, 2, counts["W5"])
	require.EqualValues(t, 10_000-maxErrorWords, counts[errorOverflow])
	require.EqualValues(t, 10_002, s.total.Load())
	s.reset()
	require.Empty(t, countsOf(&s))
	require.Zero(t, s.total.Load())
	s.add("a\r\nb:c#d text", resp.OfScript)
	require.Equal(t, map[string]int64{"a__b_c_d": 1}, countsOf(&s), "nothing forges a line of INFO")
}

// TestErrorStatsAreExact: nothing is lost between goroutines that add words at once.
func TestErrorStatsAreExact(t *testing.T) {
	var s errorStats
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 1000 {
				s.add(resp.Error(fmt.Sprintf("W%d text", (i+g)%50)), resp.OfScript)
			}
		})
	}
	all.Wait()
	counts := countsOf(&s)
	require.Len(t, counts, 50)
	for _, n := range counts {
		require.EqualValues(t, 160, n)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { s.add("W7 text", resp.OfScript) }))
}

// TestEveryWriterCountsErrors: whoever makes a writer says who counts its errors. Those of
// this list write none, or parts of a reply only.
func TestEveryWriterCountsErrors(t *testing.T) {
	none := map[string]string{
		"rlInfo": "fields", "exclusively": "pushes", "confirm": "acknowledgements", "scanElements": "elements", "scanBeside": "elements", "redirectBroken": "a push", "scanStep": "keys", "allKeys": "keys", "keep": "what is the same for all",
		"retract": "counts them itself, whether they are written or not",
		"Open":    "refuses a connection, which rejected_connections counts",
	}
	files, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		require.NoError(t, err)
		for _, d := range parsed.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				if uncounted(n) {
					if none[fn.Name.Name] == "" {
						t.Errorf("%s: a writer in %s has no OnError", f.Name(), fn.Name.Name)
					}
				}
				return true
			})
		}
	}
}

// uncounted reports whether n makes a writer that tells nobody of errors.
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
