package architecture

import (
	"go/ast"
	"slices"
)

const filesWhy = "a file that an option names may be a device or a FIFO, or hang: read it with optionfile, which accepts regular files only, bounds their size, and gives up in time"

// fileCalls has the functions that read files, by the name of their package.
var fileCalls = map[string][]string{
	"os":       {"Open", "OpenFile", "OpenInRoot", "ReadFile", "ReadDir", "DirFS", "OpenRoot"},
	"tls":      {"LoadX509KeyPair"},
	"filepath": {"Glob", "Walk", "WalkDir"},
}

// filePlaces are the production files, or folders of them, that may read files without package
// optionfile.
var filePlaces = []place{
	{"optionfile", "the package that the others use"},
	{"persistence/osfs.go", "the files of the server's own directory"},
	{"persistence/osfs_unix.go", "the server's own directory, to sync it"},
	{"server/log.go", "the server writes its log, which may be a FIFO or a device"},
	{"process/system_unix.go", "files of /proc, with fixed names"},
	{"keyspace/clock/record.go", "a file of /proc, with a fixed name"},
	{"cmd", "files from a command line, which the user can interrupt"},
	{"internal", "tests and generators"},
	{"compat_test", "tests"},
	{"examples", "demonstrations"},
}

// checkFiles reports calls of functions that read a file, unless the file is one of filePlaces.
func (c *checker) checkFiles(tree *ast.File) {
	if slices.ContainsFunc(filePlaces, func(p place) bool { return within(c.file, p.path) }) {
		return
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && slices.Contains(fileCalls[x.Name], s.Sel.Name) {
			c.report(s.Pos(), c.file+" calls "+x.Name+"."+s.Sel.Name, filesWhy)
		}
		return true
	})
}
