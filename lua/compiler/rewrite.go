package compiler

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/yuin/gopher-lua/ast"

	"github.com/cellserver/cellserver/lua/value"
)

// maxParts is the maximum number of operands of ".." in one call. Each operand needs a register,
// and a function has 250 registers.
const maxParts = 100

// rewriter changes a chunk so that functions of package libraries do what the interpreter does
// differently from Lua 5.1 and cannot be configured to do. The numbers below are numbers of issues
// of gopher-lua. A rule can be removed when TestTheInterpreterAloneAnswersOtherwise shows that the
// interpreter no longer needs it.
//
// Two rules enforce bounds of this server:
//
//   - A chain of ".." becomes one call, which bounds the length of the string and formats
//     numbers as Lua does.
//   - An assignment to a global becomes an assignment to a table that refuses it.
//
// The other rules correct results:
//
//   - "#" becomes a call, since the interpreter's operator ends at its largest array (#304),
//     which is kept small here (#501).
//   - "%" becomes a call, since Lua defines it by a division and a floor (#412 mended some
//     cases).
//   - The bounds of a numerical for loop become calls, since they may be strings.
//   - Assignments to locals are split where the interpreter gets them wrong (#440, #490; see
//     parallel).
//   - A statement or a call is put in front of loops' bodies and expressions that begin with
//     a jump, since the interpreter resolves jumps to jumps wrongly (#540; see padded and
//     unsettled).
//   - Table constructors are split where the interpreter gets them wrong (#537; see
//     constructor).
//   - Numerals are read as C does: 1e400 is infinite and 0xffffffffffffffff is 2^64.
type rewriter struct {
	// locals has the names in scope, with the names of the innermost block at the end.
	locals []string
	// last is the name of the last parameter of the function that is being rewritten, or "".
	last string
	err  error
}

// rewrite changes stmts in place. It returns an error for a malformed number.
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
	r.statements(stmts)
	r.locals = r.locals[:depth]
}

func (r *rewriter) statements(stmts []ast.Stmt) {
	for i, s := range stmts {
		if assign, ok := s.(*ast.AssignStmt); ok && r.parallel(assign) {
			stmts[i] = r.apart(assign)
		} else {
			r.statement(s)
		}
	}
}

// parallel reports whether s is an assignment that the interpreter may get wrong:
//
//   - If a local is among several variables, the interpreter assigns to it before it has
//     evaluated the values right of its own, so that "a, b = b, a" makes both equal (#440).
//   - If a local is among several values and not the last, the interpreter reads it only
//     when it has evaluated all the others (#440).
//   - If a local is assigned "x and y", and x is false and not a local, the local keeps its
//     old value (#490).
//   - If a local is assigned "(...)", another local may get the value.
//   - If the last parameter of a function is assigned the value of one call, the interpreter
//     overwrites it with the called function before it evaluates the arguments, and these
//     overwrite the locals behind it.
func (r *rewriter) parallel(s *ast.AssignStmt) bool {
	if len(s.Lhs) < 2 && len(s.Rhs) < 2 {
		switch s.Rhs[0].(type) {
		case *ast.LogicalOpExpr, *ast.Comma3Expr:
		default:
			name, ok := s.Lhs[0].(*ast.IdentExpr)
			return ok && name.Value == r.last
		}
	}
	isLocal := func(e ast.Expr) bool {
		name, ok := e.(*ast.IdentExpr)
		return ok && r.isLocal(name.Value)
	}
	return slices.ContainsFunc(s.Lhs, isLocal) || slices.ContainsFunc(s.Rhs[:len(s.Rhs)-1], isLocal)
}

// apart returns a block that does the same as the parallel assignment s. The block first evaluates
// the tables and keys on the left, then the values on the right, into hidden locals. Then it
// assigns the values one by one, from right to left as in Lua.
func (r *rewriter) apart(s *ast.AssignStmt) ast.Stmt {
	block := &ast.DoBlockStmt{}
	line := func(stmt ast.Stmt) ast.Stmt {
		stmt.SetLine(s.Line())
		stmt.SetLastLine(s.LastLine())
		return stmt
	}
	ident := func(name string, at ast.Expr) ast.Expr {
		e := &ast.IdentExpr{Value: name}
		place(e, at)
		return e
	}
	targets := make([]ast.Expr, len(s.Lhs))
	names := make([]string, len(s.Lhs))
	for i, target := range s.Lhs {
		names[i] = hiddenPrefix + "v" + strconv.Itoa(i)
		targets[i] = r.target(target)
		get, ok := targets[i].(*ast.AttrGetExpr)
		if !ok {
			continue
		}
		object, key := hiddenPrefix+"o"+strconv.Itoa(i), hiddenPrefix+"k"+strconv.Itoa(i)
		block.Stmts = append(block.Stmts, line(&ast.LocalAssignStmt{
			Names: []string{object, key}, Exprs: []ast.Expr{single(get.Object), single(get.Key)},
		}))
		targets[i] = &ast.AttrGetExpr{Object: ident(object, target), Key: ident(key, target)}
		place(targets[i], target)
	}
	r.expressions(s.Rhs)
	block.Stmts = append(block.Stmts, line(&ast.LocalAssignStmt{Names: names, Exprs: s.Rhs}))
	for i := len(targets) - 1; i >= 0; i-- {
		block.Stmts = append(block.Stmts, line(&ast.AssignStmt{
			Lhs: []ast.Expr{targets[i]}, Rhs: []ast.Expr{ident(names[i], s.Lhs[i])},
		}))
	}
	return line(block)
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
		s.Stmts = padded(s.Stmts, s)
		r.block(s.Stmts)
	case *ast.RepeatStmt:
		s.Stmts = padded(s.Stmts, s)
		depth := len(r.locals)
		r.statements(s.Stmts)
		// The condition of a repeat loop sees the locals of its block.
		s.Condition = r.expression(s.Condition)
		r.locals = r.locals[:depth]
	case *ast.IfStmt:
		s.Condition = r.expression(s.Condition)
		r.block(s.Then)
		r.block(s.Else)
	case *ast.NumberForStmt:
		r.numberFor(s)
	case *ast.GenericForStmt:
		s.Stmts = padded(s.Stmts, s)
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
			// "local function f" and "local f = function" have the same syntax tree, so f is
			// treated as declared in its own body. For "local f = function" this has one effect: an
			// assignment to a global f in that body is not noticed.
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

// bound rewrites e, a bound of a for loop, and converts it to a number at run time unless it is a
// numeral.
func (r *rewriter) bound(e ast.Expr) ast.Expr {
	e = r.expression(e)
	if _, ok := e.(*ast.NumberExpr); ok {
		return e
	}
	return hiddenCall(NameForBound, e, []ast.Expr{single(e)})
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

// target rewrites e, the target of an assignment. A global becomes a field of the table
// NameGlobals, which refuses assignments.
func (r *rewriter) target(e ast.Expr) ast.Expr {
	name, ok := e.(*ast.IdentExpr)
	if !ok || r.isLocal(name.Value) {
		return r.expression(e)
	}
	globals := &ast.IdentExpr{Value: NameGlobals}
	key := &ast.StringExpr{Value: name.Value}
	get := &ast.AttrGetExpr{Object: globals, Key: key}
	for _, node := range []ast.Expr{globals, key, get} {
		place(node, e)
	}
	return get
}

func (r *rewriter) function(f *ast.FunctionExpr, method bool) {
	depth, last := len(r.locals), r.last
	r.last = ""
	if method {
		r.declare("self")
		r.last = "self"
	}
	if f.ParList.HasVargs {
		r.declare("arg")
	}
	r.declare(f.ParList.Names...)
	if n := len(f.ParList.Names); n > 0 {
		r.last = f.ParList.Names[n-1]
	}
	r.block(f.Stmts)
	r.locals, r.last = r.locals[:depth], last
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
		return r.table(e)
	case *ast.FuncCallExpr:
		if e.Func != nil {
			e.Func = r.expression(e.Func)
		}
		if e.Receiver != nil {
			e.Receiver = r.expression(e.Receiver)
		}
		r.expressions(e.Args)
	case *ast.LogicalOpExpr:
		e.Lhs, e.Rhs = r.expression(unsettled(e.Lhs)), r.expression(e.Rhs)
	case *ast.RelationalOpExpr:
		e.Lhs, e.Rhs = r.expression(e.Lhs), r.expression(e.Rhs)
	case *ast.ArithmeticOpExpr:
		e.Lhs, e.Rhs = r.expression(e.Lhs), r.expression(e.Rhs)
		if e.Operator == "%" {
			return hiddenCall(NameModulo, e, []ast.Expr{single(e.Lhs), single(e.Rhs)})
		}
	case *ast.StringConcatOpExpr:
		return r.concat(e)
	case *ast.UnaryMinusOpExpr:
		e.Expr = r.expression(e.Expr)
	case *ast.UnaryNotOpExpr:
		e.Expr = r.expression(e.Expr)
	case *ast.UnaryLenOpExpr:
		return hiddenCall(NameLength, e, []ast.Expr{single(r.expression(e.Expr))})
	case *ast.FunctionExpr:
		r.function(e, false)
	}
	return e
}

// table rewrites the fields of the table constructor e, and returns the expression that replaces e.
func (r *rewriter) table(e *ast.TableExpr) ast.Expr {
	for _, field := range e.Fields {
		if field.Key != nil {
			field.Key = r.expression(field.Key)
		}
		field.Value = r.expression(field.Value)
	}
	return constructor(e)
}

// numeral replaces the text of e by one that the interpreter reads as C reads the original. A
// malformed number sets r.err.
func (r *rewriter) numeral(e *ast.NumberExpr) {
	f, ok := value.Parse(e.Value)
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

// concat returns one call that replaces the chain of ".." in e, which the parser nests to the
// right. If the chain has more than maxParts operands, the last operand is another such call.
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
			parts = append(parts, r.concat(chain))
			break
		}
		parts = append(parts, single(r.expression(chain.Lhs)))
		rest = chain.Rhs
	}
	return single(hiddenCall(NameConcat, e, parts))
}
