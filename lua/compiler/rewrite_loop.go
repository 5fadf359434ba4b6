package compiler

import "github.com/yuin/gopher-lua/ast"

// padded returns body, the body of loop, with an empty declaration in front if the body may begin
// with a jump. The end of such a body jumps back to its beginning. The interpreter's compiler
// replaces a jump to another jump by a jump to the target of the second jump. But it misreads the
// second jump if it has resolved that jump already, as here (#540 of gopher-lua).
func padded(body []ast.Stmt, loop ast.Stmt) []ast.Stmt {
	if !beginsWithJump(body) {
		return body
	}
	pad := &ast.LocalAssignStmt{Names: []string{hiddenPrefix + "pad"}, Exprs: []ast.Expr{&ast.NilExpr{}}}
	pad.SetLine(loop.Line())
	pad.SetLastLine(loop.Line())
	return append([]ast.Stmt{pad}, body...)
}

func beginsWithJump(body []ast.Stmt) bool {
	for _, s := range body {
		switch s := s.(type) {
		case *ast.DoBlockStmt:
			if len(s.Stmts) > 0 {
				return beginsWithJump(s.Stmts)
			}
		case *ast.LabelStmt:
		case *ast.BreakStmt, *ast.GotoStmt:
			return true
		case *ast.IfStmt:
			return beginsConstant(s.Condition)
		case *ast.WhileStmt:
			return beginsConstant(s.Condition)
		case *ast.RepeatStmt:
			return len(s.Stmts) == 0 || beginsWithJump(s.Stmts)
		default:
			return false
		}
	}
	return false
}

// beginsConstant reports whether e, a condition, begins with a constant. The compiler begins such a
// condition with a jump.
func beginsConstant(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.LogicalOpExpr:
		return beginsConstant(e.Lhs)
	case *ast.UnaryNotOpExpr:
		return beginsConstant(e.Expr)
	case *ast.NilExpr, *ast.FalseExpr, *ast.TrueExpr, *ast.NumberExpr, *ast.StringExpr:
		return true
	}
	return false
}

// unsettled returns e, the first operand of "and" or "or". If e is a constant, it is hidden in a
// call of NameValue, since the compiler begins an expression with a constant by a jump (#540 of
// gopher-lua).
func unsettled(e ast.Expr) ast.Expr {
	constant := e
	for {
		not, ok := constant.(*ast.UnaryNotOpExpr)
		if !ok {
			break
		}
		constant = not.Expr
	}
	if _, logical := constant.(*ast.LogicalOpExpr); logical || !beginsConstant(constant) {
		return e
	}
	return hiddenCall(NameValue, e, []ast.Expr{e})
}
