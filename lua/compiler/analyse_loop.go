package compiler

import (
	"math"

	"github.com/yuin/gopher-lua/ast"

	"github.com/cellserver/cellserver/lua/value"
)

// turns returns the maximum number of runs n of a numerical for loop, or 0 if it is unknown. It is
// known for a loop that counts in constant steps from a constant, either to a constant or up to the
// number of keys or arguments. In the second case byArguments is true: the loop is bounded only for
// a call with few arguments. The body cannot change the number of runs, since the interpreter
// counts in a hidden variable.
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
		return maxBoundedArguments + 1, true // one more than the maximum, since the loop may begin at 0
	}
	last, ok := constant(s.Limit)
	turns := (last-first)/step + 1
	switch {
	case !ok, turns > maxBoundedNodes:
		return 0, false
	case turns >= 1:
		return int(turns), false
	}
	return 1, false // the loop does not run, which counts as one
}

// walked returns KEYS or ARGV if s is a loop over ipairs(KEYS) or ipairs(ARGV); else ok is false.
func walked(s *ast.GenericForStmt) (over ast.Expr, ok bool) {
	call, ok := s.Exprs[0].(*ast.FuncCallExpr)
	if !ok || len(s.Exprs) != 1 || call.Receiver != nil || !isName(call.Func, "ipairs") ||
		len(call.Args) != 1 || !isArguments(call.Args[0]) {
		return nil, false
	}
	return call.Args[0], true
}

func isArguments(e ast.Expr) bool { return isName(e, "KEYS") || isName(e, "ARGV") }

// constant returns the value of e if e is an integer constant from -2^30 to 2^30. Otherwise the
// second result is false.
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
	// A larger float is refused, since a step added to it may not change it.
	return f, ok && f == math.Trunc(f) && math.Abs(f) <= 1<<30
}
