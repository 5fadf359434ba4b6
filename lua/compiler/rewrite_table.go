package compiler

import (
	"github.com/yuin/gopher-lua/ast"
)

// fieldsPerFlush is the number of fields without a key after which the interpreter's compiler moves
// their values from registers into the new table.
const fieldsPerFlush = 50

// maxPlainFields is the maximum number of fields without a key in one constructor. An instruction
// has nine bits for the number of moves, each of fieldsPerFlush fields.
const maxPlainFields = 511 * fieldsPerFlush

// maxJoined is the maximum number of parts that one call joins. Each part takes two registers, and
// a function has 250.
const maxJoined = 40

// constructor returns an expression that makes the same table as the table constructor e, and that
// the interpreter compiles correctly. The interpreter compiles e itself wrongly in these cases:
//
//   - The last field has a key, and its value is a call. The value becomes an element of the
//     list, too.
//   - A field with a key follows a multiple of 50 fields without one. Those 50 are moved
//     into the table again, from registers that hold something else by then.
//   - Several values at the end follow a multiple of 50 fields. They replace those 50.
//   - The constructor has more than maxPlainFields fields without a key. Those behind are
//     lost (#537 of gopher-lua).
//
// In the last three cases the result is a call of NameJoin, which joins the table from parts.
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

// part is a constructor of some consecutive fields of a larger constructor.
type part struct {
	table *ast.TableExpr
	// plain is the number of fields without a key. A last field with several values does not count.
	plain int
	// keyed says that all fields of the part have keys. In other parts, except for the first, all
	// keys are names, so that numbers in their tables are only indices of elements.
	keyed bool
}

// divide returns the parts of the constructor e, in the order of evaluation. It returns one part if
// the interpreter compiles e correctly.
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

// ends reports whether the part ends before the next field. key says that the field has a key,
// computed that its key is not a name and that the part is not the first, and open that the field
// has several values.
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
