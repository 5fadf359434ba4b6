package lua

import (
	"fmt"
	"math"
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

// Functions that rewritten code calls. A script cannot name them: no identifier
// has such a character.
const (
	hiddenPrefix  = "\x00"
	hiddenConcat  = hiddenPrefix + "concat"
	hiddenNumber  = hiddenPrefix + "number"
	hiddenLength  = hiddenPrefix + "length"
	hiddenGlobals = hiddenPrefix + "globals"
	hiddenCommand = hiddenPrefix + "command."
	hiddenForward = hiddenPrefix + "forward."
)

// maxParts is how many operands of ".." one call takes; each needs a register, of
// which a function has 250.
const maxParts = 100

// rewriter changes a chunk so that what the interpreter does otherwise than Lua
// 5.1, and cannot be told, is done by functions of ours:
//
//   - a chain of ".." becomes one call, which bounds the string and spells numbers;
//   - an assignment to a global becomes one to a table that refuses it;
//   - "#" becomes a call, since the interpreter's ends at its largest array;
//   - the bounds of a numerical for may be strings;
//   - numerals are read as C does, not as Go does (010 is ten).
type rewriter struct {
	// locals are the names in scope, innermost last.
	locals []string
	err    error
}

// rewrite changes stmts in place.
func rewrite(stmts []ast.Stmt) error {
	r := &rewriter{}
	r.block(stmts)
	return r.err
}

func (r *rewriter) declare(names ...string) { r.locals = append(r.locals, names...) }

func (r *rewriter) isLocal(name string) bool {
	for i := len(r.locals) - 1; i >= 0; i-- {
		if r.locals[i] == name {
			return true
		}
	}
	return false
}

func (r *rewriter) block(stmts []ast.Stmt) {
	depth := len(r.locals)
	for _, s := range stmts {
		r.statement(s)
	}
	r.locals = r.locals[:depth]
}

func (r *rewriter) statement(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.AssignStmt:
		r.expressions(s.Rhs)
		for i, target := range s.Lhs {
			s.Lhs[i] = r.target(target)
		}
	case *ast.LocalAssignStmt:
		r.localAssign(s)
	case *ast.FuncCallStmt:
		s.Expr = r.expression(s.Expr)
	case *ast.DoBlockStmt:
		r.block(s.Stmts)
	case *ast.WhileStmt:
		s.Condition = r.expression(s.Condition)
		r.block(s.Stmts)
	case *ast.RepeatStmt:
		depth := len(r.locals)
		for _, inner := range s.Stmts {
			r.statement(inner)
		}
		// The condition sees the block's locals.
		s.Condition = r.expression(s.Condition)
		r.locals = r.locals[:depth]
	case *ast.IfStmt:
		s.Condition = r.expression(s.Condition)
		r.block(s.Then)
		r.block(s.Else)
	case *ast.NumberForStmt:
		r.numberFor(s)
	case *ast.GenericForStmt:
		r.expressions(s.Exprs)
		depth := len(r.locals)
		r.declare(s.Names...)
		r.block(s.Stmts)
		r.locals = r.locals[:depth]
	case *ast.FuncDefStmt:
		r.functionStatement(s)
	case *ast.ReturnStmt:
		r.expressions(s.Exprs)
	}
}

func (r *rewriter) localAssign(s *ast.LocalAssignStmt) {
	if len(s.Exprs) == 1 && len(s.Names) == 1 {
		if f, ok := s.Exprs[0].(*ast.FunctionExpr); ok {
			// "local function f" and "local f = function" parse alike; taking f as
			// known inside changes nothing but whether an assignment to a global of
			// that name, inside its own first value, is seen.
			r.declare(s.Names...)
			r.function(f, false)
			return
		}
	}
	r.expressions(s.Exprs)
	r.declare(s.Names...)
}

func (r *rewriter) numberFor(s *ast.NumberForStmt) {
	s.Init = r.bound(s.Init)
	s.Limit = r.bound(s.Limit)
	if s.Step != nil {
		s.Step = r.bound(s.Step)
	}
	depth := len(r.locals)
	r.declare(s.Name)
	r.block(s.Stmts)
	r.locals = r.locals[:depth]
}

// bound makes a number of a bound that may be a string.
func (r *rewriter) bound(e ast.Expr) ast.Expr {
	e = r.expression(e)
	if _, ok := e.(*ast.NumberExpr); ok {
		return e
	}
	return hiddenCall(hiddenNumber, e, []ast.Expr{single(e)})
}

func (r *rewriter) functionStatement(s *ast.FuncDefStmt) {
	if s.Name.Func != nil {
		s.Name.Func = r.target(s.Name.Func)
	}
	if s.Name.Receiver != nil {
		s.Name.Receiver = r.expression(s.Name.Receiver)
	}
	r.function(s.Func, s.Name.Receiver != nil)
}

// target rewrites what is assigned to.
func (r *rewriter) target(e ast.Expr) ast.Expr {
	name, ok := e.(*ast.IdentExpr)
	if !ok || r.isLocal(name.Value) {
		return r.expression(e)
	}
	globals := &ast.IdentExpr{Value: hiddenGlobals}
	key := &ast.StringExpr{Value: name.Value}
	get := &ast.AttrGetExpr{Object: globals, Key: key}
	for _, node := range []ast.Expr{globals, key, get} {
		place(node, e)
	}
	return get
}

func (r *rewriter) function(f *ast.FunctionExpr, method bool) {
	depth := len(r.locals)
	if method {
		r.declare("self")
	}
	if f.ParList.HasVargs {
		r.declare("arg")
	}
	r.declare(f.ParList.Names...)
	r.block(f.Stmts)
	r.locals = r.locals[:depth]
}

func (r *rewriter) expressions(list []ast.Expr) {
	for i := range list {
		list[i] = r.expression(list[i])
	}
}

func (r *rewriter) expression(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.NumberExpr:
		r.numeral(e)
	case *ast.AttrGetExpr:
		e.Object, e.Key = r.expression(e.Object), r.expression(e.Key)
	case *ast.TableExpr:
		for _, field := range e.Fields {
			if field.Key != nil {
				field.Key = r.expression(field.Key)
			}
			field.Value = r.expression(field.Value)
		}
	case *ast.FuncCallExpr:
		if e.Func != nil {
			e.Func = r.expression(e.Func)
		}
		if e.Receiver != nil {
			e.Receiver = r.expression(e.Receiver)
		}
		r.expressions(e.Args)
	case *ast.LogicalOpExpr:
		e.Lhs, e.Rhs = r.expression(e.Lhs), r.expression(e.Rhs)
	case *ast.RelationalOpExpr:
		e.Lhs, e.Rhs = r.expression(e.Lhs), r.expression(e.Rhs)
	case *ast.ArithmeticOpExpr:
		e.Lhs, e.Rhs = r.expression(e.Lhs), r.expression(e.Rhs)
	case *ast.StringConcatOpExpr:
		return r.concat(e)
	case *ast.UnaryMinusOpExpr:
		e.Expr = r.expression(e.Expr)
	case *ast.UnaryNotOpExpr:
		e.Expr = r.expression(e.Expr)
	case *ast.UnaryLenOpExpr:
		return hiddenCall(hiddenLength, e, []ast.Expr{single(r.expression(e.Expr))})
	case *ast.FunctionExpr:
		r.function(e, false)
	}
	return e
}

// numeral makes the interpreter read a numeral as C would.
func (r *rewriter) numeral(e *ast.NumberExpr) {
	f, ok := parseNumber(e.Value)
	switch {
	case !ok:
		if r.err == nil {
			r.err = fmt.Errorf("%d: malformed number near '%s'", e.Line(), e.Value)
		}
	case math.IsInf(f, 0):
		e.Value = "inf"
	default:
		e.Value = strconv.FormatFloat(f, 'e', -1, 64)
	}
}

// concat makes one call of a chain, which the parser nests to the right.
func (r *rewriter) concat(e *ast.StringConcatOpExpr) ast.Expr {
	var parts []ast.Expr
	var rest ast.Expr = e
	for {
		chain, ok := rest.(*ast.StringConcatOpExpr)
		if !ok {
			parts = append(parts, single(r.expression(rest)))
			break
		}
		if len(parts) == maxParts-1 {
			// What is left becomes the last operand, a call of its own.
			parts = append(parts, r.concat(chain))
			break
		}
		parts = append(parts, single(r.expression(chain.Lhs)))
		rest = chain.Rhs
	}
	return single(hiddenCall(hiddenConcat, e, parts))
}

// single cuts an operand that could be several values to one.
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

// place gives a new node the lines of the one that it stands for.
func place(node, at ast.Expr) {
	node.SetLine(at.Line())
	node.SetLastLine(at.LastLine())
}
