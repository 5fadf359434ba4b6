package compiler

import (
	"math"

	"github.com/yuin/gopher-lua/ast"

	"github.com/cellserver/cellserver/lua/value"
)

// turns is how often a numerical loop runs at most, 0 if that is not known, and whether
// that is only so with few arguments. Known is one that counts up to a constant
// or to the number of keys or arguments. The interpreter counts in a variable of its
// own, so that the body cannot change it.
func turns(s *ast.NumberForStmt) (n int, byArguments bool) {
	first, ok := constant(s.Init)
	step := 1.0
	if s.Step != nil {
		var known bool
		step, known = constant(s.Step)
		ok = ok && known
	}
	if !ok || step == 0 {
		return 0, false
	}
	if length, isLength := s.Limit.(*ast.UnaryLenOpExpr); isLength && isArguments(length.Expr) && first >= 0 && step >= 1 {
		return maxBoundedArguments + 1, true // it may begin at 0
	}
	last, ok := constant(s.Limit)
	turns := (last-first)/step + 1
	switch {
	case !ok, turns > maxBoundedNodes:
		return 0, false
	case turns >= 1:
		return int(turns), false
	}
	return 1, false // it does not run at all
}

// walked returns what a loop goes through with ipairs, if that is KEYS or ARGV.
func walked(s *ast.GenericForStmt) (over ast.Expr, ok bool) {
	call, ok := s.Exprs[0].(*ast.FuncCallExpr)
	if !ok || len(s.Exprs) != 1 || call.Receiver != nil || !isName(call.Func, "ipairs") ||
		len(call.Args) != 1 || !isArguments(call.Args[0]) {
		return nil, false
	}
	return call.Args[0], true
}

func isArguments(e ast.Expr) bool { return isName(e, "KEYS") || isName(e, "ARGV") }

// constant returns the value of a small whole number, which may be negative.
func constant(e ast.Expr) (float64, bool) {
	if minus, ok := e.(*ast.UnaryMinusOpExpr); ok {
		f, ok := constant(minus.Expr)
		return -f, ok
	}
	numeral, ok := e.(*ast.NumberExpr)
	if !ok {
		return 0, false
	}
	f, ok := value.Parse(numeral.Value)
	// Where numbers are sparse, adding a step can leave one as it is.
	return f, ok && f == math.Trunc(f) && math.Abs(f) <= 1<<30
}
