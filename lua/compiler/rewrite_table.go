package compiler

import (
	"github.com/yuin/gopher-lua/ast"
)

// fieldsPerFlush is the number of fields without a key after which the interpreter's compiler moves
// them from registers into the new table.
const fieldsPerFlush = 50

// maxPlainFields is the maximum number of fields without a key in a constructor: an instruction has
// nine bits for the number of these moves.
const maxPlainFields = 511 * fieldsPerFlush

// maxJoined is the maximum number of parts that one call joins: each takes two registers, of which
// a function has 250.
const maxJoined = 40

// constructor returns a constructor that the interpreter compiles correctly. It does not if
//
//   - the last field has a key, and its value is a call: the value becomes an element of
//     the list, too;
//   - a field with a key stands behind a multiple of 50 fields without one: these are
//     moved into the table again, from registers that hold something else by then;
//   - several values at the end stand there: they replace those 50;
//   - it has more than maxPlainFields without a key: those behind are lost (#537 of
//     gopher-lua).
//
// In the last three cases a call joins it from parts.
func constructor(e *ast.TableExpr) ast.Expr {
	for i, field := range e.Fields {
		if field.Key != nil || i < len(e.Fields)-1 {
			field.Value = single(field.Value)
		}
	}
	parts := divide(e)
	whole := ast.Expr(parts[0].table)
	n := parts[0].plain
	for parts = parts[1:]; len(parts) > 0; {
		now := parts[:min(len(parts), maxJoined)]
		args := []ast.Expr{whole, numeral(n, e)}
		for _, p := range now {
			if p.keyed {
				args = append(args, p.table, numeral(-1, e))
				continue
			}
			args = append(args, p.table, numeral(p.plain, e))
			n += p.plain
		}
		whole, parts = hiddenCall(NameJoin, e, args), parts[len(now):]
	}
	return whole
}

// part is a part of the fields of a constructor.
type part struct {
	table *ast.TableExpr
	// plain is the number of fields without a key, not counting several values at the end.
	plain int
	// keyed says that all fields have keys. In other parts, except for the first, all keys are
	// names, so that the numbers in their tables are those of elements.
	keyed bool
}

// divide returns the parts of a constructor, in the order of evaluation.
func divide(e *ast.TableExpr) []part {
	parts := []part{{table: &ast.TableExpr{}}}
	for i, field := range e.Fields {
		now := &parts[len(parts)-1]
		open := i == len(e.Fields)-1 && field.Key == nil && several(field.Value)
		_, named := field.Key.(*ast.StringExpr)
		computed := field.Key != nil && !named
		if now.ends(field.Key != nil, computed && len(parts) > 1, open) {
			parts = append(parts, part{table: &ast.TableExpr{}, keyed: computed})
			now = &parts[len(parts)-1]
		}
		now.table.Fields = append(now.table.Fields, field)
		if field.Key == nil && !open {
			now.plain++
		}
	}
	for _, p := range parts {
		place(p.table, e)
	}
	return parts
}

// ends reports whether the part ends before the next field: key says that the field has a key,
// computed that the key is not a name, open that the field has several values.
func (p part) ends(key, computed, open bool) bool {
	switch {
	case p.keyed:
		return !key
	case computed:
		return true
	case key || open:
		return p.plain > 0 && p.plain%fieldsPerFlush == 0
	}
	return p.plain == maxPlainFields
}
