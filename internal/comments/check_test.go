package comments_test

import (
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/comments"
	"github.com/cellserver/cellserver/internal/effort"
)

// TestCommentsOfTheModule holds the module itself to the rules.
func TestCommentsOfTheModule(t *testing.T) {
	effort.Alone(t)
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	found, err := comments.Check(os.DirFS(root), os.DirFS(filepath.Join(build.Default.GOROOT, "src")), "ARCHITECTURE.md", "CONTRIBUTING.md")
	require.NoError(t, err)
	for _, v := range found {
		t.Error(v)
	}
}

// library is the standard library of the tests: it has two packages.
var library = fstest.MapFS{
	"os/os.go":           {Data: []byte("package os\ntype File struct{ name string }\nfunc (f *File) Close() {}\nfunc Open() {}\n")},
	"runtime/debug/d.go": {Data: []byte("package debug\nfunc Stack() {}\n")},
}

// TestEachRuleFindsAComment shows for each rule comments that break it and similar ones that do not.
func TestEachRuleFindsAComment(t *testing.T) {
	tests := map[string]struct {
		source string
		want   string // a part of the violation; empty means none
	}{
		"link to a type":              {"// x is for [Store].\nvar x int", ""},
		"link to a type that is gone": {"// x is for [Shop].\nvar x int", "a.go:7: [Shop]"},
		"link to a pointer":           {"// x is for [*Store].\nvar x int", ""},
		"link to a method":            {"// x is for [Store.Get].\nvar x int", ""},
		"link to a method of nothing": {"// x is for [Store.Put].\nvar x int", "[Store.Put]"},
		"link to a field":             {"// x is for [Store.Size].\nvar x int", ""},
		"link to an embedded field":   {"// x is for [Store.Depth].\nvar x int", ""},
		"link to another package":     {"// x is for [base.Ground].\nvar x int", ""},
		"link into nothing":           {"// x is for [base.Sky].\nvar x int", "[base.Sky]"},
		"link to a method elsewhere":  {"// x is for [base.Ground.Dig].\nvar x int", ""},
		"link to no method elsewhere": {"// x is for [base.Ground.Fly].\nvar x int", "[base.Ground.Fly]"},
		"link by a path":              {"// x is for [deep/base.Ground].\nvar x int", ""},
		"link by a path into nothing": {"// x is for [deep/base.Sky].\nvar x int", "[deep/base.Sky]"},
		"link to the library":         {"// x is for [os.File.Close].\nvar x int", ""},
		"link to no such library":     {"// x is for [os.Fill].\nvar x int", "[os.Fill]"},
		"link to what others import":  {"// x is for [debug.Stack].\nvar x int", ""},
		"link to another module":      {"// x is for [yaml.Node].\nvar x int", ""},
		"link to a package":           {"// x is for [os] and [base].\nvar x int", ""},
		"link to a small name":        {"// x is for [smallName].\nvar x, smallName int", ""},
		"link to no small name":       {"// x is for [smallName].\nvar x int", "[smallName]"},
		"link with a target":          {"// x is as in [Paper].\n//\n// [Paper]: https://example.com/paper\nvar x int", ""},
		"syntax of a command":         {"// x is for SET key value [NX] [increment].\nvar x int", ""},
		"index in prose":              {"// x is a[Shop] or a [Shop](x).\nvar x int", ""},
		"link in code":                {"// x is like\n//\n//\tsee [Shop]\nvar x int", ""},
		"link in a body":              {"func f() {\n\t// as in [Shop]\n}", "a.go:8: [Shop]"},
		"link in a block comment":     {"/*\nx is\nfor [Shop].\n*/\nvar x int", "a.go:9: [Shop]"},

		"name of a package in prose":  {"// x is for base.Ground and base.Ground.Dig.\nvar x int", ""},
		"name that is gone":           {"// x is for base.Sky.\nvar x int", "base.Sky"},
		"member that is gone":         {"// x is for base.Ground.Fly.\nvar x int", "base.Ground.Fly"},
		"name of its own package":     {"// x is for p.Store.\nvar x int", ""},
		"name of the library":         {"// x is for os.Open.\nvar x int", ""},
		"no name of the library":      {"// x is for os.Opened.\nvar x int", "os.Opened"},
		"library that is not known":   {"// x is for debug.Stacks, which this file does not import.\nvar x int", ""},
		"file":                        {"// x is for base.go and docs/base.Sky and base.Sky/x.\nvar x int", ""},
		"end of a sentence":           {"// x has a base. Sky is above.\nvar x int", ""},
		"key of a configuration":      {"// x is for base.sky.\nvar x int", ""},
		"command with a dot":          {"// x is for CL.THROTTLE.\nvar x int", ""},
		"field that is as a package":  {"// x is for far.Size.\nvar x struct{ far Store }", ""},
		"field without the member":    {"// x is for far.Sky.\nvar x struct{ far Store }", "far.Sky"},
		"package that is not used":    {"// x is for far.Sky.\nvar x int", "far.Sky"},
		"local that is as a package":  {"func f() {\n\tbase := 1\n\t_ = base\n\t// base.Sky is above\n}", ""},
		"member of a type":            {"// x is for Store.Get and Store.Size.\nvar x int", ""},
		"no member of a type":         {"// x is for Store.put.\nvar x int", "Store.put"},
		"member of an unknown parent": {"// x is for Alien.Anything.\nvar x int", ""},

		"field of the receiver":        {"// Set sets s.Size, s.Ground.Deep and s.Depth.\nfunc (s *Store) Set() {}", ""},
		"no field of the receiver":     {"// Set sets s.length.\nfunc (s *Store) Set() {}", "s.length"},
		"no field of a field":          {"// Set sets s.Ground.Wide.\nfunc (s *Store) Set() {}", "s.Ground.Wide"},
		"method of the receiver":       {"func (s *Store) Set() {\n\t// s.Get locks\n}", ""},
		"no method of the receiver":    {"func (s *Store) Set() {\n\t// s.Fetch locks\n}", "s.Fetch"},
		"receiver of an unknown type":  {"// Set sets a.length.\nfunc (a *Alien) Set() {}", ""},
		"parameter":                    {"// set sets s.Size.\nfunc set(s *Store) {}", ""},
		"no field of a parameter":      {"// set sets s.length.\nfunc set(s *Store) {}", "s.length"},
		"receiver with an old name":    {"// Set sets r.Size.\nfunc (s *Store) Set() {}", "r.Size: the function has no receiver"},
		"variable":                     {"// Set sets r.Size.\nfunc (s *Store) Set() { r := s; _ = r }", ""},
		"example":                      {"// Set sets some, e.g. Size, i.e. that.\nfunc (e *Store) Set(i *Store) {}", ""},
		"receiver in another function": {"// x is what s.length was.\nvar x int", ""},

		"interface":                  {"// Set implements Getter.\nfunc (s *Store) Set() {}", ""},
		"interface elsewhere":        {"// Set implements base.Digger.\nfunc (s *Store) Set() {}", "base.Digger"},
		"interface that is gone":     {"// Set implements OldGetter.\nfunc (s *Store) Set() {}", "implements OldGetter"},
		"interface of the library":   {"// Set implements os.Filer.\nfunc (s *Store) Set() {}", "os.Filer"},
		"protocol that is no name":   {"// Set implements RESP and Lua.\nfunc (s *Store) Set() {}", ""},
		"interface that is imported": {"// Set implements BigGround.\nfunc (s *Store) Set() {}", ""},

		"doc comment":                  {"// Set sets.\nfunc (s *Store) Set() {}", ""},
		"doc comment with an article":  {"// A Big is large.\ntype Big struct{}", ""},
		"doc comment of another":       {"// Get sets.\nfunc (s *Store) Set() {}", ""},
		"doc comment of a declaration": {"// Store is large.\ntype Big struct{}", "the doc comment of Big begins with Store"},
		"doc comment of an old name":   {"// SetAll sets.\nfunc (s *Store) Set() {}", "begins with SetAll"},
		"doc comment of a small name":  {"// put sets.\nfunc set() {}", "the doc comment of set begins with put"},
		"doc comment in words":         {"// Sets all.\nfunc set() {}", ""},
		"doc comment with a term":      {"// redis-cell has this. \nfunc set() {}", ""},
		"doc comment of a group":       {"// Sizes of a store.\nconst (\n\tone = 1\n\ttwo = 2\n)", ""},
		"doc comment of one of them":   {"// one and two are sizes.\nconst (\n\tone = 1\n\ttwo = 2\n)", ""},
		"doc comment of none of them":  {"// three and four are sizes.\nconst (\n\tone = 1\n\ttwo = 2\n)", "begins with three"},
		"doc comment inside a group":   {"const (\n\t// three is large\n\ttwo = 2\n)", "the doc comment of two begins with three"},
		"doc comment of a field":       {"type big struct {\n\t// one and two are sizes\n\tone, two int\n}", ""},
		"doc comment of no field":      {"type big struct {\n\t// three is a size\n\tone, two int\n}", "begins with three"},
		"doc comment of a test":        {"// TestOld: it works.\nfunc TestNew() {}", "begins with TestOld"},
		"directive":                    {"//go:noinline\nfunc set() {}", ""},
	}
	const head = "// Package p is a test.\npackage p; import (\"os\"; \"example.com/m/deep/base\"; \"go.yaml.in/yaml/v3\")\n" +
		"type Store struct { Size int; base.Ground; Deep Inner }; func (s *Store) Get() {}\n" +
		"type Inner struct{ Depth int }; type Alien struct{ yaml.Node }\n" +
		"type Getter interface{ Get() }\n\n"
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			found, err := comments.Check(fstest.MapFS{
				"go.mod":         {Data: []byte("module example.com/m\n")},
				"p/a.go":         {Data: []byte(head + tt.source + "\n")},
				"far/f.go":       {Data: []byte("// Package far is beside.\npackage far")},
				"deep/base/b.go": {Data: []byte("// Package base is below.\npackage base; import \"runtime/debug\"; type Ground struct{ Depth, Deep int }; func (g Ground) Dig() {}; type BigGround any")},
			}, library)
			require.NoError(t, err)
			if tt.want == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Contains(t, found[0].String(), tt.want)
			require.Contains(t, found[0].String(), "p/a.go:")
		})
	}
}

// TestPackageComments shows what a package comment may be.
func TestPackageComments(t *testing.T) {
	long := "// Package p is " + strings.Repeat("very ", 25) + "long.\n"
	tests := map[string]struct {
		tree fstest.MapFS
		want string // a part of the violation; empty means none
	}{
		"comment":               {tree("p/a.go", "// Package p is a test.\npackage p"), ""},
		"no comment":            {tree("p/a.go", "\npackage p"), "p/a.go:2: package p has no comment"},
		"old name":              {tree("p/a.go", "// Package q is a test.\npackage p"), `begins with "Package q is a test." and not with "Package p "`},
		"program":               {tree("cmd/x/a.go", "// Command x is a test.\npackage main"), ""},
		"program as a package":  {tree("cmd/x/a.go", "// Package main is a test.\npackage main"), `not with "Command x "`},
		"long second sentence":  {tree("p/a.go", "// Package p is a test. "+long+"package p"), ""},
		"long first sentence":   {tree("p/a.go", long+"package p"), "characters, more than 120"},
		"in one of the files":   {tree("p/a.go", "package p", "p/b.go", "// Package p is a test.\npackage p"), ""},
		"in a test only":        {tree("p/a.go", "package p", "p/a_test.go", "// Package p is a test.\npackage p"), "no comment"},
		"folder of tests":       {tree("p/a_test.go", "// Package p_test is a test.\npackage p_test"), ""},
		"folder of other tests": {tree("p/a_test.go", "package p_test"), "package p_test has no comment"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			found, err := comments.Check(tt.tree, library)
			require.NoError(t, err)
			if tt.want == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Contains(t, found[0].String(), tt.want)
		})
	}
}

// TestPages shows what a page may name.
func TestPages(t *testing.T) {
	module := func(line string) fstest.MapFS {
		return tree("p/a.go", "// Package p is a test.\npackage p; type Store struct{ Size int }", "page.md", "# Page\n\n"+line+"\n")
	}
	for _, line := range []string{
		"`p.Store`, `p.Store.Size`, `p/a.go`, `a.go`, `p.small`, `q.Gone` and `p`", "p.Gone and p/gone.go", "```\n`p.Gone`\n```",
	} {
		found, err := comments.Check(module(line), library, "page.md")
		require.NoError(t, err)
		require.Empty(t, found, line)
	}
	for _, gone := range []string{"p.Gone", "p.Store.Gone", "p/gone.go", "gone.go", "p.Gone(1)"} {
		found, err := comments.Check(module("a `p.Store` and `"+gone+"`"), library, "page.md")
		require.NoError(t, err)
		require.Len(t, found, 1, gone)
		require.Contains(t, found[0].String(), "page.md:3: "+gone)
	}
	_, err := comments.Check(module(""), library, "none.md")
	require.ErrorContains(t, err, "none.md")
}

// tree is a module of files, each with its source after its name.
func tree(filesAndSources ...string) fstest.MapFS {
	all := fstest.MapFS{"go.mod": {Data: []byte("module example.com/m\n")}}
	for pair := range slices.Chunk(filesAndSources, 2) {
		all[pair[0]] = &fstest.MapFile{Data: []byte(pair[1])}
	}
	return all
}

// TestUnreadableModules: what cannot be read is an error, never a pass.
func TestUnreadableModules(t *testing.T) {
	for want, module := range map[string]fs.FS{
		"name of the module": fstest.MapFS{},
		"has no line":        fstest.MapFS{"go.mod": {Data: []byte("go 1.26\n")}},
		"p/a.go":             tree("p/a.go", "not Go"),
	} {
		_, err := comments.Check(module, library)
		require.ErrorContains(t, err, want)
	}
}
