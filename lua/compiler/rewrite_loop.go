package compiler

import "github.com/yuin/gopher-lua/ast"

// padded returns the body of a loop that jumps back to it, with a statement in front if it may
// begin with a jump. The interpreter's compiler replaces a jump to a jump by a jump to the second
// one's target, but misreads a jump that it has resolved already, such as one further up (#540 of
// gopher-lua).
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

// beginsConstant reports whether a condition begins with a constant.
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

// unsettled returns the first operand of "and" or "or", hidden in a call if it is a constant: for a
// constant the compiler begins the expression with a jump (#540, too).
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
