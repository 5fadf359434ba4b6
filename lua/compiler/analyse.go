package compiler

import (
	"github.com/yuin/gopher-lua/ast"
)

// quickGlobals has the cheap global functions that a bounded script may call.
var quickGlobals = map[string]bool{
	"tonumber": true, "tostring": true, "type": true, "error": true, "assert": true,
}

// quickMembers has, for each table of functions, the cheap functions that a bounded script may
// call. It excludes functions that allocate in proportion to a number (string.rep), match patterns,
// sort or call back.
var quickMembers = map[string]map[string]bool{
	"redis": {
		"call": true, "pcall": true, "error_reply": true, "status_reply": true,
		"setresp": true, "replicate_commands": true, "set_repl": true,
	},
	"math": {
		"floor": true, "ceil": true, "max": true, "min": true, "abs": true, "fmod": true,
	},
	"string": {"len": true},
}

// analyser determines the facts about a script. It does not track scopes. It gives up if a name on
// which it relies is declared or assigned to, and does not regard a local as a key if the local is
// declared twice or assigned to.
type analyser struct {
	facts    facts
	nodes    int
	parts    int
	factor   int // maximum number of times that the node which is being analysed runs
	declared map[string]int
	assigned map[string]bool
	// keyLocals has, for each local that was set to KEYS[n], the index n, or anyKey if n is
	// unknown.
	keyLocals map[string]int
	// calls has each call of redis.call and redis.pcall, in the order of the source. decideCalls
	// checks later whether all of them are known.
	calls []*ast.FuncCallExpr
	// returned has the calls whose value the script returns unchanged.
	returned map[*ast.FuncCallExpr]bool
	// ignored has the calls whose value is not used.
	ignored map[*ast.FuncCallExpr]bool
	// known and plain are the values of the facts known and plainKeys for the part that was
	// analysed.
	known bool
	plain bool
}

// analyse returns the facts that stmts prove. stmts is the chunk before it is rewritten. analyse
// may replace the functions in its calls; see shorten.
func analyse(stmts []ast.Stmt) facts {
	a := &analyser{
		declared: map[string]int{}, assigned: map[string]bool{}, keyLocals: map[string]int{},
		returned: map[*ast.FuncCallExpr]bool{}, ignored: map[*ast.FuncCallExpr]bool{},
		known: true, plain: true, factor: 1,
	}
	a.facts.bounded = true
	a.block(stmts)
	if !a.facts.bounded || a.facts.byArguments && !a.plain || a.hidesGlobals() {
		return facts{}
	}
	a.decideCalls()
	a.shorten()
	a.facts.plainKeys = a.plain
	return a.facts
}

// shorten replaces redis.call and redis.pcall in a bounded script by hidden functions, which are
// found without a look-up in the table redis. This is correct because in a bounded script the name
// redis always means that table. The hidden function of a call whose value is returned keeps the
// reply unconverted, and that of a call whose value is not used makes no value.
func (a *analyser) shorten() {
	for _, e := range a.calls {
		get, _ := e.Func.(*ast.AttrGetExpr)
		member, _ := get.Key.(*ast.StringExpr)
		name := NameCommand
		switch {
		case a.returned[e]:
			name = NameForward
		case a.ignored[e]:
			name = NameIgnore
		}
		function := &ast.IdentExpr{Value: name + member.Value}
		place(function, get)
		e.Func = function
	}
}

func (a *analyser) giveUp() { a.facts.bounded = false }

// hidesGlobals reports whether the script declares or assigns to a name on which the analysis
// relies.
func (a *analyser) hidesGlobals() bool {
	for _, name := range []string{"redis", "KEYS", "ARGV", "math", "string", "_G", "ipairs"} {
		if a.declared[name] > 0 || a.assigned[name] {
			return true
		}
	}
	for name := range quickGlobals {
		if a.declared[name] > 0 || a.assigned[name] {
			return true
		}
	}
	return false
}

func (a *analyser) block(stmts []ast.Stmt) {
	for _, s := range stmts {
		if a.facts.bounded {
			a.statement(s)
		}
	}
}

func (a *analyser) statement(s ast.Stmt) {
	a.count()
	switch s := s.(type) {
	case *ast.AssignStmt:
		a.list(s.Rhs)
		for _, target := range s.Lhs {
			a.target(target)
		}
	case *ast.LocalAssignStmt:
		a.list(s.Exprs)
		for i, name := range s.Names {
			a.declared[name]++
			if len(s.Exprs) == len(s.Names) {
				if n := keyIndex(s.Exprs[i]); n != 0 {
					a.keyLocals[name] = n
				}
			}
		}
	case *ast.FuncCallStmt:
		if call, ok := s.Expr.(*ast.FuncCallExpr); ok {
			a.ignored[call] = true
		}
		a.expression(s.Expr)
	case *ast.DoBlockStmt:
		a.block(s.Stmts)
	case *ast.IfStmt:
		a.expression(s.Condition)
		a.block(s.Then)
		a.block(s.Else)
	case *ast.ReturnStmt:
		if len(s.Exprs) == 1 {
			if call, ok := s.Exprs[0].(*ast.FuncCallExpr); ok {
				a.returned[call] = true
			}
		}
		a.list(s.Exprs)
	case *ast.NumberForStmt:
		a.list([]ast.Expr{s.Init, s.Limit})
		a.declared[s.Name]++
		n, byArguments := turns(s)
		a.facts.byArguments = a.facts.byArguments || byArguments
		a.loop(n, s.Stmts)
	case *ast.GenericForStmt:
		a.walk(s)
	case *ast.BreakStmt:
	default:
		// All other statements end the analysis: other loops, functions, and goto.
		a.giveUp()
	}
}

func (a *analyser) count() {
	a.nodes += a.factor
	if a.nodes > maxBoundedNodes {
		a.giveUp()
	}
}

func (a *analyser) target(e ast.Expr) {
	switch e := e.(type) {
	case *ast.IdentExpr:
		a.assigned[e.Value] = true
	case *ast.AttrGetExpr:
		// The target is a field of a table. If a local names the table, it can only be KEYS or ARGV
		// if KEYS or ARGV was used as a value, which has reset plain and known.
		if name, ok := e.Object.(*ast.IdentExpr); ok && (name.Value == "KEYS" || name.Value == "ARGV") {
			a.plain, a.known = false, false
		}
		a.expression(e.Object)
		a.expression(e.Key)
	default:
		a.giveUp()
	}
}

func (a *analyser) list(exprs []ast.Expr) {
	for _, e := range exprs {
		a.expression(e)
	}
}

func (a *analyser) expression(e ast.Expr) {
	a.count()
	if !a.facts.bounded {
		return
	}
	switch e := e.(type) {
	case *ast.TrueExpr, *ast.FalseExpr, *ast.NilExpr, *ast.NumberExpr, *ast.StringExpr:
	case *ast.IdentExpr:
		a.name(e)
	case *ast.AttrGetExpr:
		a.get(e)
	case *ast.TableExpr:
		a.table(e)
	case *ast.FuncCallExpr:
		a.call(e)
	case *ast.LogicalOpExpr:
		a.list([]ast.Expr{e.Lhs, e.Rhs})
	case *ast.RelationalOpExpr:
		a.list([]ast.Expr{e.Lhs, e.Rhs})
	case *ast.ArithmeticOpExpr:
		a.list([]ast.Expr{e.Lhs, e.Rhs})
	case *ast.StringConcatOpExpr:
		a.parts += 2 * a.factor
		if a.parts > 2*maxBoundedParts {
			a.giveUp()
		}
		a.list([]ast.Expr{e.Lhs, e.Rhs})
	case *ast.UnaryMinusOpExpr:
		a.expression(e.Expr)
	case *ast.UnaryNotOpExpr:
		a.expression(e.Expr)
	case *ast.UnaryLenOpExpr:
		if isName(e.Expr, "KEYS") || isName(e.Expr, "ARGV") {
			return
		}
		a.expression(e.Expr)
	default:
		// All other expressions end the analysis: functions, and "...".
		a.giveUp()
	}
}

// name analyses a variable that is used as a value.
func (a *analyser) name(e *ast.IdentExpr) {
	switch e.Value {
	case "KEYS", "ARGV":
		// The script can change the table through another name.
		a.plain, a.known = false, false
	case "redis", "_G", "math", "string", "table", "coroutine", "cjson", "struct", "bit", "cmsgpack":
		// If a library had another name, any expression could call it.
		a.giveUp()
	}
}

func (a *analyser) get(e *ast.AttrGetExpr) {
	if isName(e.Object, "KEYS") || isName(e.Object, "ARGV") {
		if _, constant := e.Key.(*ast.NumberExpr); !constant {
			a.expression(e.Key)
		}
		return
	}
	if name, ok := e.Object.(*ast.IdentExpr); ok && quickMembers[name.Value] != nil {
		// This is a constant such as LOG_NOTICE of redis, or a function that the script stores. The
		// analysis gives up when the script calls the stored function.
		a.expression(e.Key)
		return
	}
	a.expression(e.Object)
	a.expression(e.Key)
}

func (a *analyser) table(e *ast.TableExpr) {
	for _, field := range e.Fields {
		if field.Key != nil {
			a.expression(field.Key)
		}
		a.expression(field.Value)
	}
}

func (a *analyser) call(e *ast.FuncCallExpr) {
	if e.Receiver != nil || e.Func == nil {
		a.giveUp()
		return
	}
	switch f := e.Func.(type) {
	case *ast.IdentExpr:
		if f.Value == "unpack" {
			a.unpack(e)
			return
		}
		if !quickGlobals[f.Value] {
			a.giveUp()
		}
	case *ast.AttrGetExpr:
		table, ok1 := f.Object.(*ast.IdentExpr)
		member, ok2 := f.Key.(*ast.StringExpr)
		if !ok1 || !ok2 || !quickMembers[table.Value][member.Value] {
			a.giveUp()
			return
		}
		if table.Value == "redis" && (member.Value == "call" || member.Value == "pcall") {
			a.calls = append(a.calls, e)
		}
	default:
		a.giveUp()
	}
	a.list(e.Args)
}

// unpack analyses a call of unpack. It allows only unpack(KEYS) and unpack(ARGV), whose cost is
// bounded. The arguments of the enclosing call are unknown then.
func (a *analyser) unpack(e *ast.FuncCallExpr) {
	if a.declared["unpack"] > 0 || a.assigned["unpack"] || len(e.Args) != 1 || !isName(e.Args[0], "KEYS") && !isName(e.Args[0], "ARGV") {
		a.giveUp()
		return
	}
	a.known = false
}

// loop analyses a block that runs up to turns times. It gives up if turns is too large for a
// bounded script, or is 0, which means that the number is unknown.
func (a *analyser) loop(turns int, stmts []ast.Stmt) {
	if turns <= 0 || turns > maxBoundedNodes {
		a.giveUp()
		return
	}
	outer := a.factor
	a.factor *= turns
	a.count()
	a.block(stmts)
	a.factor = outer
}

// walk analyses a generic for loop. It allows only loops over ipairs(KEYS) or ipairs(ARGV).
func (a *analyser) walk(s *ast.GenericForStmt) {
	for _, name := range s.Names {
		a.declared[name]++
	}
	over, ok := walked(s)
	if !ok {
		a.giveUp()
		return
	}
	if isName(over, "KEYS") && len(s.Names) > 1 {
		a.keyLocals[s.Names[1]] = anyKey
	}
	a.facts.byArguments = true
	a.loop(maxBoundedArguments, s.Stmts)
}

// decideCalls checks the calls, once all declarations are known. If all of them are known, it sets
// facts.known and facts.calls.
func (a *analyser) decideCalls() {
	if !a.known {
		return
	}
	calls := make([]Call, 0, len(a.calls))
	for _, e := range a.calls {
		if len(e.Args) == 0 {
			continue // The call names no command, so it fails whenever it runs.
		}
		call, ok := a.knownCall(e)
		if !ok {
			return
		}
		calls = append(calls, call)
	}
	a.facts.known, a.facts.calls = true, calls
}

func (a *analyser) knownCall(e *ast.FuncCallExpr) (Call, bool) {
	name, ok := e.Args[0].(*ast.StringExpr)
	if !ok {
		return Call{}, false
	}
	call := Call{Name: name.Value, Keys: make([]int, 0, len(e.Args)-1)}
	for i, arg := range e.Args[1:] {
		if f, ok := arg.(*ast.FuncCallExpr); ok && i == len(e.Args)-2 && !f.AdjustRet && !a.givesOne(f) {
			return Call{}, false // The last argument may have any number of values.
		}
		call.Keys = append(call.Keys, a.keyOf(arg))
	}
	return call, true
}

// givesOne reports whether the function that e calls returns exactly one value whatever its
// arguments are.
func (a *analyser) givesOne(e *ast.FuncCallExpr) bool {
	if name, ok := e.Func.(*ast.IdentExpr); ok {
		return name.Value == "tonumber" || name.Value == "tostring" || name.Value == "type"
	}
	if get, ok := e.Func.(*ast.AttrGetExpr); ok {
		return isName(get.Object, "math") || isName(get.Object, "string")
	}
	return false
}

func (a *analyser) keyOf(e ast.Expr) int {
	if n := keyIndex(e); n != 0 {
		return n
	}
	if name, ok := e.(*ast.IdentExpr); ok && a.declared[name.Value] == 1 && !a.assigned[name.Value] {
		return a.keyLocals[name.Value]
	}
	return 0
}
