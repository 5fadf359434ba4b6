package compiler

import (
	"github.com/yuin/gopher-lua/ast"
)

// fieldsPerFlush is after how many fields without a key the interpreter's compiler moves
// them from registers into the table that is being made.
const fieldsPerFlush = 50

// constructor makes a constructor one that the interpreter compiles rightly. It does not if
//
//   - the last field has a key, and its value is a call: the value becomes an element of
//     the list, too;
//   - a field with a key stands behind a multiple of 50 fields without one: these are
//     moved into the table again, from registers that hold something else by then;
//   - several values at the end stand there: they replace those 50.
func constructor(e *ast.TableExpr) ast.Expr {
	plain, flushed := 0, false
	for i, field := range e.Fields {
		last := i == len(e.Fields)-1
		if field.Key != nil {
			field.Value = single(field.Value)
			flushed = flushed || atFlush(plain)
			continue
		}
		if !last || !several(field.Value) {
			plain++
			continue
		}
		flushed = flushed || atFlush(plain)
	}
	if !flushed {
		return e
	}
	return keyed(e)
}

// atFlush says that so many fields without a key have all just been moved.
func atFlush(plain int) bool { return plain > 0 && plain%fieldsPerFlush == 0 }

// keyed gives every field of a constructor a key. Several values at its end are added
// by a call.
func keyed(e *ast.TableExpr) ast.Expr {
	var rest ast.Expr
	plain := 0
	fields := e.Fields
	for i, field := range fields {
		if field.Key != nil {
			continue
		}
		if i == len(fields)-1 && several(field.Value) {
			rest, e.Fields = field.Value, fields[:i]
			break
		}
		plain++
		field.Key = numeral(plain, field.Value)
		field.Value = single(field.Value)
	}
	if rest == nil {
		return e
	}
	return hiddenCall(NameExtend, e, []ast.Expr{e, numeral(plain, e), rest})
}
