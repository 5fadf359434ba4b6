package architecture

import (
	"go/ast"
	"slices"
)

const filesWhy = "a file that an option names may be a device or a FIFO, or hang: read it by optionfile, which takes regular files only, bounds what it reads, and ends in time"

// fileCalls are the functions that read files, by package.
var fileCalls = map[string][]string{
	"os":       {"Open", "OpenFile", "OpenInRoot", "ReadFile", "ReadDir", "DirFS", "OpenRoot"},
	"tls":      {"LoadX509KeyPair"},
	"filepath": {"Glob", "Walk", "WalkDir"},
}

// filePlaces are where production files read files without optionfile: a file, or a folder with what
// is below.
var filePlaces = []place{
	{"optionfile", "it is the one way"},
	{"persistence/osfs.go", "the files of the server's own directory"},
	{"persistence/osfs_unix.go", "the directory itself, to sync it"},
	{"server/log.go", "the log is written, and may be a FIFO or a device"},
	{"server/process_unix.go", "files of /proc, by names of our own"},
	{"keyspace/clock/record.go", "a file of /proc, by a name of our own"},
	{"cmd", "arguments of a command line, which a user can interrupt"},
	{"internal", "tests and generators"},
	{"compat_test", "tests"},
	{"examples", "demonstrations"},
}

// checkFiles checks that a production file reads no file in a way of its own.
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
