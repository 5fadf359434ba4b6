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

// keyIndex returns n for KEYS[n], anyKey if n is not a constant, otherwise 0.
func keyIndex(e ast.Expr) int {
	get, ok := e.(*ast.AttrGetExpr)
	if !ok || !isName(get.Object, "KEYS") {
		return 0
	}
	numeral, ok := get.Key.(*ast.NumberExpr)
	if !ok {
		return anyKey // or nil, which is not a valid argument
	}
	f, ok := value.Parse(numeral.Value)
	if !ok || f < 1 || f > 1<<20 || f != float64(int(f)) {
		return 0
	}
	return int(f)
}

// single limits an operand that may have several values to one.
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

// place gives a new node the line numbers of the node that it replaces.
func place(node, at ast.Expr) {
	node.SetLine(at.Line())
	node.SetLastLine(at.LastLine())
}

// several reports whether e may have any number of values.
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
