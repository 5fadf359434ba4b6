// Package comments finds comments that name what does not exist. [Check] parses a module, indexes
// all declared names, and looks up each name to which a comment refers. It compiles nothing, so it
// reads the files of all platforms on each of them.
package comments

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/cellserver/cellserver/internal/architecture"
)

// These are the reasons of the violations that [Check] returns.
const (
	whyMissing = "a comment names only what exists: name what took its place"
	whyStray   = "the function has no receiver, parameter or variable of this name"
	whyDoc     = "a doc comment begins with the name that it documents"
)

// Check returns a violation for each comment of the module in root that refers to a name that does
// not exist. It checks these names:
//
//   - in a doc link in brackets, the name of a declaration, or of a method or a field, in this
//     or another package;
//   - in prose, the name of a package, a dot and an exported name, if the package belongs to
//     the module or the file imports it from the standard library;
//   - in prose, the name of a type, a dot, and the name of a member;
//   - in prose, the name of a receiver or parameter, a dot, and the name of a member, and the
//     receiver itself;
//   - after the word "implements", the name of an interface;
//   - the first word of a doc comment, if it is an identifier: it must be the declared name.
//
// Check also returns the violations of [architecture.CheckComments]. pages are files in Markdown
// below root, in whose code spans it checks the names of Go files and of declarations of the
// module. std is the source of the standard library, the folder src of GOROOT.
func Check(root, std fs.FS, pages ...string) ([]architecture.Violation, error) {
	x, err := newIndex(root, std)
	if err != nil {
		return nil, err
	}
	var found []architecture.Violation
	for _, p := range x.packages {
		for _, f := range p.files {
			c := checker{index: x, file: f}
			c.check()
			found = append(found, c.found...)
		}
	}
	for _, page := range pages {
		violations, err := x.checkPage(root, page)
		if err != nil {
			return nil, err
		}
		found = append(found, violations...)
	}
	packages, err := architecture.Packages(root)
	if err != nil {
		return nil, err
	}
	found = append(found, architecture.CheckComments(packages)...)
	slices.SortFunc(found, func(a, b architecture.Violation) int { return compare(a.Where, b.Where) })
	return found, nil
}

// compare orders two places in files, of the form "file:line", by file and then by line.
func compare(a, b string) int {
	nameA, lineA, _ := strings.Cut(a, ":")
	nameB, lineB, _ := strings.Cut(b, ":")
	if n := strings.Compare(nameA, nameB); n != 0 {
		return n
	}
	if n := len(lineA) - len(lineB); n != 0 {
		return n
	}
	return strings.Compare(lineA, lineB)
}

// checker collects the violations of one file.
type checker struct {
	*index
	file  *file
	found []architecture.Violation
}

// scope has the names that a comment may use besides names of packages and declarations: the
// receiver and the parameters of a function with their types, and its local variables, whose types
// are not known.
type scope struct {
	within   bool // whether the comment belongs to a function
	from, to token.Pos
	types    map[string]*entry
	locals   map[string]bool
	links    map[string]bool // the texts of link targets, such as [RFC]: https://...
}

func (c *checker) check() {
	scopes := c.scopes()
	c.checkDocs()
	for _, group := range c.file.tree.Comments {
		s := scope{}
		if i := slices.IndexFunc(scopes, func(s scope) bool { return s.from <= group.Pos() && group.End() <= s.to }); i >= 0 {
			s = scopes[i]
		}
		s.links = linkTargets(group)
		for _, line := range lines(group) {
			c.checkLine(line, s)
		}
	}
}

func (c *checker) report(pos token.Pos, line int, what, why string) {
	c.found = append(c.found, architecture.Violation{
		Where: fmt.Sprintf("%s:%d", c.file.name, c.files.Position(pos).Line+line),
		What:  what,
		Why:   why,
	})
}

// scopes returns a scope for each function of the file. The function's doc comment is in the scope.
func (c *checker) scopes() (all []scope) {
	for _, d := range c.file.tree.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		s := scope{within: true, from: f.Pos(), to: f.End(), types: map[string]*entry{}, locals: map[string]bool{}}
		if f.Doc != nil {
			s.from = f.Doc.Pos()
		}
		for _, list := range []*ast.FieldList{f.Recv, f.Type.Params, f.Type.Results} {
			if list == nil {
				continue
			}
			for _, field := range list.List {
				for _, name := range field.Names {
					s.types[name.Name] = c.typeOf(c.file, field.Type)
				}
			}
		}
		if f.Body != nil {
			ast.Inspect(f.Body, func(n ast.Node) bool {
				s.declare(n)
				return true
			})
		}
		all = append(all, s)
	}
	return all
}

// declare adds the names that n, a node of the function's body, declares.
func (s *scope) declare(n ast.Node) {
	add := func(e ast.Expr) {
		if name, ok := e.(*ast.Ident); ok {
			s.locals[name.Name] = true
		}
	}
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE {
			for _, e := range n.Lhs {
				add(e)
			}
		}
	case *ast.RangeStmt:
		add(n.Key)
		add(n.Value)
	case *ast.ValueSpec:
		for _, name := range n.Names {
			add(name)
		}
	case *ast.TypeSpec:
		add(n.Name)
	case *ast.Field:
		for _, name := range n.Names {
			add(name)
		}
	}
}

// line is a line of prose in a comment.
type line struct {
	pos  token.Pos // position of the comment with the line
	at   int       // number of lines after that position
	text string
}

var directive = regexp.MustCompile(`^//[a-z0-9]+:[a-z0-9]|^//(line|extern|export) |^// ?\+build`)

// lines returns the lines of prose in group. It leaves out directives and blocks of code.
func lines(group *ast.CommentGroup) (all []line) {
	for _, comment := range group.List {
		if directive.MatchString(comment.Text) {
			continue
		}
		if text, ok := strings.CutPrefix(comment.Text, "//"); ok {
			all = append(all, line{comment.Pos(), 0, text})
			continue
		}
		text := strings.TrimSuffix(strings.TrimPrefix(comment.Text, "/*"), "*/")
		for i, part := range strings.Split(text, "\n") {
			all = append(all, line{comment.Pos(), i, part})
		}
	}
	return slices.DeleteFunc(all, func(l line) bool { return strings.HasPrefix(l.text, "\t") })
}

var linkTarget = regexp.MustCompile(`(?m)^\[([^\]]+)\]: \S+$`)

func linkTargets(group *ast.CommentGroup) map[string]bool {
	targets := map[string]bool{}
	for _, found := range linkTarget.FindAllStringSubmatch(group.Text(), -1) {
		targets[found[1]] = true
	}
	return targets
}

var (
	docLink    = regexp.MustCompile(`(^|[^\w\])])\[\*?([A-Za-z_][\w./]*)\]($|[^\w(\[])`)
	dotted     = regexp.MustCompile(`[A-Za-z_]\w*(\.[A-Za-z_]\w*)+`)
	implements = regexp.MustCompile(`\bimplements ([A-Z]\w*[a-z]\w*)([^\w.]|\.? |\.?$)`)
	camel      = regexp.MustCompile(`[a-z0-9][A-Z]`)
	fileName   = regexp.MustCompile(`\.(go|md|conf|sh|ya?ml|json|lua|script|txt|html|c|h|rs|py|proto|com|org|io|dev|rdb|aof|mod|sum)$`)
	shout      = regexp.MustCompile(`^[A-Z0-9_]+$`)
)

func (c *checker) checkLine(l line, s scope) {
	linked := map[string]bool{}
	for _, found := range docLink.FindAllStringSubmatch(l.text, -1) {
		if name := found[2]; !s.links[name] {
			linked[name] = true
			c.checkLink(l, name)
		}
	}
	for _, at := range dotted.FindAllStringIndex(l.text, -1) {
		name := l.text[at[0]:at[1]]
		if !linked[name] && isReference(l.text, at[0], at[1]) {
			c.checkDotted(l, name, s)
		}
	}
	for _, found := range implements.FindAllStringSubmatch(l.text, -1) {
		if name := found[1]; !c.known(name) {
			c.report(l.pos, l.at, "implements "+name, whyMissing)
		}
	}
}

// isReference reports whether text[from:to] can be a reference. It cannot if the characters around
// it make it a part of a path, an address or an option, or if it is the name of a file.
func isReference(text string, from, to int) bool {
	if from > 0 && strings.IndexByte(`./-@#$%:~\_`, text[from-1]) >= 0 {
		return false
	}
	if to < len(text) && strings.IndexByte(`/-@*`, text[to]) >= 0 {
		return false
	}
	return !fileName.MatchString(text[from:to])
}

// checkLink checks the doc link to name. A link to an unexported name is not a form of godoc, but
// of this project: checkLink checks it only if it cannot be a word of a syntax, since it has at
// least four characters and a capital inside.
func (c *checker) checkLink(l line, name string) {
	if shout.MatchString(name) && c.file.pkg.names[name] == nil || fileName.MatchString(name) {
		return // the text is a word in the syntax of a command, such as NX, or a file such as file.conf
	}
	where, rest := "", name
	if slash := strings.LastIndexByte(name, '/'); slash >= 0 {
		dot := strings.IndexByte(name[slash:], '.')
		if dot < 0 {
			return // the text is a link to a package by its path
		}
		where, rest = name[:slash+dot], name[slash+dot+1:]
	}
	parts := strings.Split(rest, ".")
	if where != "" {
		p := c.own(where)
		if p == nil {
			p = c.packages[where]
		}
		if p == nil {
			p = c.library(where)
		}
		if p != nil && !c.has(p, parts) {
			c.report(l.pos, l.at, "["+name+"]", whyMissing)
		}
		return
	}
	if c.has(c.file.pkg, parts) {
		return
	}
	packages, known := c.imported(c.file, parts[0])
	switch {
	case len(parts) == 1:
		if known || packages != nil || c.file.imports[name] != "" || !ast.IsExported(name) && (len(name) < 4 || !camel.MatchString(name)) {
			return // the text is a link to a package, or a word in the syntax of a command
		}
	case !known && c.file.imports[parts[0]] != "":
		return // the text is a link to a package of another module, whose names are not indexed
	case !known:
		packages = c.elsewhere(parts[0])
	}
	if len(parts) > 1 && slices.ContainsFunc(packages, func(p *pkg) bool { return c.has(p, parts[1:]) }) {
		return
	}
	c.report(l.pos, l.at, "["+name+"]", whyMissing)
}

// elsewhere returns the packages of the standard library that any file of the module imports by the
// given name. A doc link may refer to them without an import.
func (c *checker) elsewhere(name string) (found []*pkg) {
	for _, imported := range c.libraries[name] {
		if p := c.library(imported); p != nil {
			found = append(found, p)
		}
	}
	return found
}

// has reports whether p declares names[0], and whether that has the members in the rest of names.
// It also returns true if the members are not known.
func (c *checker) has(p *pkg, names []string) bool {
	e := p.names[names[0]]
	if e == nil {
		return false
	}
	if len(names) == 1 {
		return true
	}
	if !e.isType {
		if e = c.typeOf(e.file, e.of); e == nil {
			return true
		}
	}
	return c.path(e, names[1:]) == ""
}

// checkDotted checks name, a name with a dot in prose.
func (c *checker) checkDotted(l line, name string, s scope) {
	parts := strings.Split(name, ".")
	if e, ok := s.types[parts[0]]; ok {
		if missing := c.path(e, parts[1:]); missing != "" && name != "e.g" && name != "i.e" {
			c.report(l.pos, l.at, name, whyMissing)
		}
		return
	}
	if c.isStray(parts, s) {
		c.report(l.pos, l.at, name, whyStray)
		return
	}
	own := c.file.pkg.names[parts[0]]
	isType := own != nil && own.isType
	if s.locals[parts[0]] || !ast.IsExported(parts[1]) && !isType {
		return
	}
	if c.has(c.file.pkg, parts) {
		return
	}
	packages, known := c.imported(c.file, parts[0])
	if !known && !isType || slices.ContainsFunc(packages, func(p *pkg) bool { return c.has(p, parts[1:]) }) {
		return
	}
	if c.file.imports[parts[0]] == "" && c.isVariable(parts) {
		return
	}
	c.report(l.pos, l.at, name, whyMissing)
}

// isStray reports whether parts[0] is a single small letter that the function does not declare,
// such as the former name of a receiver.
func (c *checker) isStray(parts []string, s scope) bool {
	name := parts[0]
	if len(name) > 1 || name < "a" || !s.within || s.locals[name] || c.file.imports[name] != "" || c.file.pkg.names[name] != nil {
		return false
	}
	return len(c.file.pkg.variables[name]) == 0 && len(parts[1]) > 1
}

// isVariable reports whether parts[0] can be a field or a variable of the package that has the
// members in the rest of parts.
func (c *checker) isVariable(parts []string) bool {
	return slices.ContainsFunc(c.file.pkg.variables[parts[0]], func(v *entry) bool {
		e := c.typeOf(v.file, v.of)
		return e == nil || c.path(e, parts[1:]) == ""
	})
}

// known reports whether name is declared in this package or in an indexed one that the file
// imports. It also returns true for a word that cannot be a name.
func (c *checker) known(name string) bool {
	if c.file.pkg.names[name] != nil || !camel.MatchString(name) {
		return true
	}
	for imported := range c.file.imports {
		packages, _ := c.imported(c.file, imported)
		if slices.ContainsFunc(packages, func(p *pkg) bool { return p.names[name] != nil }) {
			return true
		}
	}
	return false
}
