package compiler

import (
	"math"

	"github.com/yuin/gopher-lua/ast"

	"github.com/cellserver/cellserver/lua/value"
)

// loop looks at a block that runs so often, 0 meaning that this is not known.
func (a *analyser) loop(turns int, stmts []ast.Stmt) {
	if turns <= 0 || turns > maxStraightNodes {
		a.giveUp()
		return
	}
	outer := a.factor
	a.factor *= turns
	a.count()
	a.block(stmts)
	a.factor = outer
}

// turns is how often a numerical loop runs at most: one that counts up to a constant
// or to the number of keys or arguments. The interpreter counts in a variable of its
// own, so that the body cannot change it.
func (a *analyser) turns(s *ast.NumberForStmt) int {
	first, ok := constant(s.Init)
	step := 1.0
	if s.Step != nil {
		var known bool
		step, known = constant(s.Step)
		ok = ok && known
	}
	if !ok || step == 0 {
		return 0
	}
	if n, isLength := s.Limit.(*ast.UnaryLenOpExpr); isLength && isArguments(n.Expr) && first >= 0 && step >= 1 {
		a.facts.byArguments = true
		return maxStraightArguments + 1 // it may begin at 0
	}
	last, ok := constant(s.Limit)
	turns := (last-first)/step + 1
	switch {
	case !ok, turns > maxStraightNodes:
		return 0
	case turns >= 1:
		return int(turns)
	}
	return 1 // it does not run at all
}

// walk looks at a loop over ipairs(KEYS) or ipairs(ARGV).
func (a *analyser) walk(s *ast.GenericForStmt) {
	for _, name := range s.Names {
		a.declared[name]++
	}
	call, ok := s.Exprs[0].(*ast.FuncCallExpr)
	if !ok || len(s.Exprs) != 1 || call.Receiver != nil || !isName(call.Func, "ipairs") ||
		len(call.Args) != 1 || !isArguments(call.Args[0]) {
		a.giveUp()
		return
	}
	if isName(call.Args[0], "KEYS") && len(s.Names) > 1 {
		a.keyLocals[s.Names[1]] = anyKey
	}
	a.facts.byArguments = true
	a.loop(maxStraightArguments, s.Stmts)
}

func isArguments(e ast.Expr) bool { return isName(e, "KEYS") || isName(e, "ARGV") }

// constant returns the value of a small whole number, be it negative.
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
