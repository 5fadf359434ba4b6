package architecture

import (
	"go/ast"
	"go/build/constraint"
	"go/token"
	"slices"
	"strings"
)

// realTag is the build tag of tests that start programs.
const realTag = "real"

const programsWhy = "`go test ./...` starts no program and opens no port outside of transport, so it needs nothing but Go and passes on a busy machine: use inproc.Feed or inproc.Bubble, or put the test behind the build tag " + realTag

const bubbleWhy = "the timers of a bubble crash the race detector on two processors: use internal/bubble.Test or inproc.Bubble"

// programPackages are the packages by which tests start programs or choose ports.
var programPackages = []string{
	"os/exec", module + "/internal/activation", module + "/internal/freeport", module + "/internal/programs", module + "/internal/storetest",
	module + "/compat_test/clients/process",
}

// portCalls has the functions that listen on a port of this machine or connect to one, by the name
// of their package.
var portCalls = map[string][]string{
	"net":      {"Listen", "ListenPacket", "ListenTCP", "ListenUDP", "ListenUnix", "ListenUnixgram", "Dial", "DialTimeout", "DialTCP", "DialUnix"},
	"tls":      {"Listen", "Dial", "DialWithDialer"},
	"fakeresp": {"Start"},
	"httptest": {"NewServer", "NewTLSServer", "NewUnstartedServer"},
	"inproc":   {"Start", "Serve", "ServeAdmin", "ServeTimed", "ServeWith", "Dial"},
}

// place is a file, or a folder with all files below it, that is exempt from a rule, with the
// reason.
type place struct{ path, why string }

// programPlaces are the places whose tests may start programs or open ports without the tag real. A
// place that needs no exception is a violation, too.
var programPlaces = []place{
	{"transport", "the tests are about sockets; they use this machine and port 0"},
}

// placeOf returns the index of the element of programPlaces that contains file, or -1.
func placeOf(file string) int {
	return slices.IndexFunc(programPlaces, func(p place) bool { return within(file, p.path) })
}

// isReal reports whether a file is built only with the tag real.
func isReal(tree *ast.File) bool {
	for _, group := range tree.Comments {
		if group.Pos() > tree.Package {
			break
		}
		for _, c := range group.List {
			if !constraint.IsGoBuild(c.Text) {
				continue
			}
			x, err := constraint.Parse(c.Text)
			return err == nil && !x.Eval(func(tag string) bool { return tag != realTag })
		}
	}
	return false
}

// checkPrograms reports each import and call by which a test without the tag real starts a program
// or opens a port. In one of programPlaces it only notes that the place is needed. It also reports each call by which a
// test starts a bubble without the workaround of internal/bubble.
func (c *checker) checkPrograms(tree *ast.File) {
	if isReal(tree) {
		return
	}
	report := c.report
	if at := placeOf(c.file); at >= 0 {
		report = func(token.Pos, string, string) { c.places[at] = true }
	}
	for _, spec := range tree.Imports {
		if imported := strings.Trim(spec.Path.Value, `"`); slices.Contains(programPackages, imported) {
			report(spec.Pos(), c.file+" imports "+imported, programsWhy)
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		switch x, ok := s.X.(*ast.Ident); {
		case !ok:
		case slices.Contains(portCalls[x.Name], s.Sel.Name):
			report(s.Pos(), c.file+" calls "+x.Name+"."+s.Sel.Name, programsWhy)
		case x.Name == "synctest" && s.Sel.Name == "Test":
			c.report(s.Pos(), c.file+" calls synctest.Test", bubbleWhy)
		}
		return true
	})
}

// unneededPlaces returns a violation for each of programPlaces in which no test starts a program or
// opens a port.
func unneededPlaces(needed map[int]bool) (found []Violation) {
	for i, p := range programPlaces {
		if !needed[i] {
			found = append(found, Violation{Where: "internal/architecture/programs.go", What: p.path + " needs no exception", Why: "exceptions may only become fewer"})
		}
	}
	return found
}
