package comments

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// checkDocs checks the first word of each doc comment.
func (c *checker) checkDocs() {
	for _, d := range c.file.tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			c.checkDoc(d.Doc, d.Name.Name)
		case *ast.GenDecl:
			c.checkGroup(d)
		}
	}
}

func (c *checker) checkGroup(d *ast.GenDecl) {
	if d.Tok == token.IMPORT {
		return
	}
	var all []string
	for _, spec := range d.Specs {
		var names []string
		var doc *ast.CommentGroup
		switch s := spec.(type) {
		case *ast.TypeSpec:
			names, doc = []string{s.Name.Name}, s.Doc
			c.checkFields(s.Type)
		case *ast.ValueSpec:
			for _, name := range s.Names {
				names = append(names, name.Name)
			}
			doc = s.Doc
		}
		all = append(all, names...)
		c.checkDoc(doc, names...)
	}
	c.checkDoc(d.Doc, all...)
}

// checkFields checks the comments above the fields of a struct and the methods of an interface in
// expr. Such a comment may describe all lines below it, so it may begin with the name of any of
// them.
func (c *checker) checkFields(expr ast.Expr) {
	ast.Inspect(expr, func(n ast.Node) bool {
		var list *ast.FieldList
		switch n := n.(type) {
		case *ast.StructType:
			list = n.Fields
		case *ast.InterfaceType:
			list = n.Methods
		default:
			return true
		}
		var all []string
		for _, field := range list.List {
			for _, name := range field.Names {
				all = append(all, name.Name)
			}
			if len(field.Names) == 0 {
				all = append(all, typeName(field.Type))
			}
		}
		for _, field := range list.List {
			c.checkDoc(field.Doc, all...)
		}
		return true
	})
}

var firstWord = regexp.MustCompile(`^[A-Za-z_]\w*`)

// checkDoc reports a doc comment that begins with an identifier which is not one of names. A word
// is an identifier if it has a capital inside, or if it begins with a small letter, since no
// sentence does.
func (c *checker) checkDoc(doc *ast.CommentGroup, names ...string) {
	if doc == nil {
		return
	}
	text := strings.TrimSpace(doc.Text())
	word := firstWord.FindString(text)
	if word == "" || slices.Contains(names, word) {
		return
	}
	rest := text[len(word):]
	if rest != "" && strings.IndexByte(" ,:.'(", rest[0]) < 0 {
		return // the text is a part of a longer word, such as redis-cell
	}
	if shout.MatchString(word) || ast.IsExported(word) && !camel.MatchString(word) && (len(names) != 1 || !c.other(word)) {
		return // the text is a word of English or of Redis, and not an identifier
	}
	c.report(doc.Pos(), 0, "the doc comment of "+strings.Join(names, ", ")+" begins with "+word, whyDoc)
}

// other reports whether the package declares word. A doc comment that begins with the name of another
// declaration was probably copied from there, or left behind by a rename.
func (c *checker) other(word string) bool { return c.file.pkg.names[word] != nil }
