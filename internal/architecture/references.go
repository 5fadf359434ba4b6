package architecture

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Reference says that one file of a package uses what another file declares:
// names, methods or fields. However much it uses, that is one reference.
type Reference struct {
	From, To string
	// Names is what From uses, in the order of the alphabet.
	Names []string
}

// String returns the reference on one line.
func (r Reference) String() string {
	return r.From + " uses " + strings.Join(r.Names, ", ") + " of " + r.To
}

// references returns the production files in folder dir that Linux builds, and
// which of them refers to which, both in the order of the alphabet.
//
// The package is type-checked by itself: whatever it imports is taken to be
// empty, and the errors that follow from that are ignored. So no module has to
// be found and no other package to be read; what is lost is a field or method of
// a value whose type comes out of another package's generic code.
func references(root fs.FS, dir string, names []string) (files []string, all []Reference, err error) {
	fset := token.NewFileSet()
	linux := forLinux(root)
	var trees []*ast.File
	for _, name := range names {
		if match, err := linux.MatchFile(dir, name); err != nil || !match {
			continue
		}
		tree, err := parse(root, fset, path.Join(dir, name))
		if err != nil {
			return nil, nil, err
		}
		trees, files = append(trees, tree), append(files, name)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: emptyPackages{}, Error: func(error) {}}
	pkg, _ := config.Check(dir, fset, trees, info)

	used := map[[2]string]map[string]bool{} // names, by file that uses and file that declares
	for id, object := range info.Uses {
		if object.Pkg() != pkg || !object.Pos().IsValid() {
			continue
		}
		pair := [2]string{fileOf(fset, id.Pos()), fileOf(fset, object.Pos())}
		if pair[0] == pair[1] {
			continue
		}
		if used[pair] == nil {
			used[pair] = map[string]bool{}
		}
		used[pair][object.Name()] = true
	}
	for pair, names := range used {
		all = append(all, Reference{From: pair[0], To: pair[1], Names: slices.Sorted(maps.Keys(names))})
	}
	slices.SortFunc(all, func(a, b Reference) int {
		return strings.Compare(a.From+" "+a.To, b.From+" "+b.To)
	})
	return files, all, nil
}

// forLinux chooses files as a build for one platform does, so that the figures
// are the same wherever they are counted.
func forLinux(root fs.FS) build.Context {
	c := build.Default
	c.GOOS, c.GOARCH, c.CgoEnabled = "linux", "amd64", false
	c.JoinPath = path.Join
	c.OpenFile = func(name string) (io.ReadCloser, error) { return root.Open(name) }
	return c
}

func fileOf(fset *token.FileSet, pos token.Pos) string {
	return path.Base(fset.Position(pos).Filename)
}

func parse(root fs.FS, fset *token.FileSet, name string) (*ast.File, error) {
	source, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	return parser.ParseFile(fset, name, source, parser.SkipObjectResolution)
}

// emptyPackages imports every package as one that declares nothing.
type emptyPackages struct{}

func (emptyPackages) Import(name string) (*types.Package, error) {
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	return p, nil
}
