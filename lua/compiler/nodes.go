package compiler

import (
	"strconv"

	"github.com/yuin/gopher-lua/ast"

	"github.com/cellserver/cellserver/lua/value"
)

func isName(e ast.Expr, name string) bool {
	ident, ok := e.(*ast.IdentExpr)
	return ok && ident.Value == name
}

// keyIndex returns n if e is KEYS[n] with an integer constant n from 1 to 2^20, anyKey if e is
// KEYS[i] and i is not a number constant, and 0 if e is anything else.
func keyIndex(e ast.Expr) int {
	get, ok := e.(*ast.AttrGetExpr)
	if !ok || !isName(get.Object, "KEYS") {
		return 0
	}
	numeral, ok := get.Key.(*ast.NumberExpr)
	if !ok {
		return anyKey // KEYS[i] may also be nil, which is not a valid argument
	}
	f, ok := value.Parse(numeral.Value)
	if !ok || f < 1 || f > 1<<20 || f != float64(int(f)) {
		return 0
	}
	return int(f)
}

// single returns e, limited to one value if e is a call or "...".
func single(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		e.AdjustRet = true
	case *ast.Comma3Expr:
		e.AdjustRet = true
	}
	return e
}

func hiddenCall(name string, at ast.Expr, args []ast.Expr) *ast.FuncCallExpr {
	function := &ast.IdentExpr{Value: name}
	call := &ast.FuncCallExpr{Func: function, Args: args, AdjustRet: true}
	place(function, at)
	place(call, at)
	return call
}

// place sets the line numbers of node, a new node, to the line numbers of at, the node that it
// replaces.
func place(node, at ast.Expr) {
	node.SetLine(at.Line())
	node.SetLastLine(at.LastLine())
}

// several reports whether e may have any number of values, as a call or "..." that is not limited
// to one.
func several(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		return !e.AdjustRet
	case *ast.Comma3Expr:
		return !e.AdjustRet
	}
	return false
}

func numeral(n int, at ast.Expr) ast.Expr {
	e := &ast.NumberExpr{Value: strconv.Itoa(n)}
	place(e, at)
	return e
}
