package lua_test

import (
	"fmt"
	"strings"
)

// grammar generates a script from bytes. Each byte determines one choice. When there are none left,
// it chooses the shortest alternative.
type grammar struct {
	data  []byte
	depth int
	// calm omits constructs of scripts that are not bounded.
	calm bool
}

func (g *grammar) pick(n int) int {
	if len(g.data) == 0 {
		return 0
	}
	c := int(g.data[0])
	g.data = g.data[1:]
	return c % n
}

func (g *grammar) oneOf(words ...string) string { return words[g.pick(len(words))] }

func (g *grammar) name() string {
	return g.oneOf("a", "b", "c", "d", "e", "redis", "KEYS", "tonumber", "x")
}

var libraries = map[string][]string{
	"string":    {"byte", "char", "find", "format", "gmatch", "gsub", "len", "lower", "match", "rep", "reverse", "sub", "upper", "dump"},
	"table":     {"concat", "insert", "remove", "sort", "maxn", "getn", "foreach", "foreachi", "setn"},
	"math":      {"floor", "random", "randomseed", "max", "fmod", "modf", "ldexp", "huge"},
	"coroutine": {"create", "resume", "yield", "status", "wrap", "running"},
	"cjson":     {"encode", "decode", "encode_max_depth", "encode_sparse_array", "decode_max_depth", "encode_invalid_numbers", "new", "null", "encode_number_precision"},
	"struct":    {"pack", "unpack", "size"},
	"bit":       {"band", "bnot", "lshift", "tohex", "rol"},
	"redis":     {"call", "pcall", "error_reply", "status_reply", "sha1hex", "log", "setresp", "set_repl"},
	"cmsgpack":  {"pack"},
}

var libraryNames = []string{"redis", "string", "table", "math", "coroutine", "cjson", "struct", "bit", "cmsgpack"}

var baseNames = []string{
	"tostring", "tonumber", "type", "pcall", "xpcall", "error", "assert", "select", "unpack", "next", "pairs", "ipairs",
	"rawget", "rawset", "rawequal", "setmetatable", "getmetatable", "loadstring", "load", "collectgarbage",
}

func (g *grammar) function() string {
	if g.calm {
		return g.oneOf("redis.call", "redis.pcall", "tonumber", "tostring", "type", "math.floor", "redis.status_reply", "unpack", "f", "a")
	}
	if g.pick(2) == 0 {
		return g.oneOf(baseNames...)
	}
	library := g.oneOf(libraryNames...)
	return library + "." + g.oneOf(libraries[library]...)
}

func (g *grammar) value() string {
	return g.oneOf("1", "0", "-1", "nil", "true", "'x'", "''", "1e308", "0/0", "2^31", "65536", "'a.-b'", "'%d%s'", "'get'", "'set'", "'>I4'",
		"'[1,{\"a\":null}]'", "'%f[%w]'", "'return 1'", "_G", "KEYS", "ARGV", "KEYS[1]", "KEYS[2]", "ARGV[1]", "redis", "string", "cjson.null",
		"getmetatable('')", "#KEYS", "1/0", "'__index'", "'k'", "redis.call")
}

func (g *grammar) calmValue() string {
	return g.oneOf("1", "'get'", "'set'", "KEYS[1]", "KEYS[2]", "ARGV[1]", "#KEYS", "'x'", "a", "b", "nil", "KEYS[a]", "KEYS", "redis", "f")
}

func (g *grammar) expression() string {
	g.depth++
	defer func() { g.depth-- }()
	if g.depth > 6 || len(g.data) == 0 {
		if g.calm {
			return g.calmValue()
		}
		return g.value()
	}
	choices := 14
	if g.calm {
		choices = 9
	}
	switch g.pick(choices) {
	case 0, 1:
		if g.calm {
			return g.calmValue()
		}
		return g.value()
	case 2:
		return g.name()
	case 3:
		return g.call()
	case 4:
		return "(" + g.expression() + g.oneOf(" + ", " .. ", " == ", " < ", " and ", " or ", " % ", " ^ ", " - ") + g.expression() + ")"
	case 5:
		return "{" + g.expression() + ", k = " + g.expression() + "}"
	case 6:
		return "(" + g.expression() + ")[" + g.expression() + "]"
	case 7:
		return g.oneOf("not ", "-", "#") + g.expression()
	case 8:
		return g.call()
	case 9:
		return "function(a, b, ...) " + g.block() + " end"
	case 10:
		return "setmetatable({}, {" + g.oneOf("__index", "__newindex", "__call", "__tostring", "__concat", "__add", "__eq", "__lt", "__len", "__metatable") + " = " + g.expression() + "})"
	case 11:
		return "coroutine.wrap(function(...) " + g.block() + " coroutine.yield(" + g.expression() + ") end)"
	case 12:
		return "(" + g.expression() + "):" + g.oneOf("rep", "sub", "gsub", "find", "x") + "(" + g.expression() + ", " + g.expression() + ")"
	}
	return "select(2, pcall(" + g.expression() + ", " + g.expression() + "))"
}

func (g *grammar) call() string {
	f := g.function()
	if g.pick(8) == 7 {
		f = "(" + g.expression() + ")"
	}
	args := make([]string, g.pick(4))
	for i := range args {
		args[i] = g.expression()
	}
	return f + "(" + strings.Join(args, ", ") + ")"
}

func (g *grammar) block() string {
	g.depth++
	defer func() { g.depth-- }()
	var b strings.Builder
	for range g.pick(4) {
		b.WriteString(g.statement())
		b.WriteString(" ")
	}
	return b.String()
}

func (g *grammar) statement() string {
	if g.depth > 5 {
		return "a = a"
	}
	choices := 13
	if g.calm {
		choices = 8
	}
	chosen := g.pick(choices)
	if g.calm && chosen >= 6 {
		return g.calmLoop()
	}
	switch chosen {
	case 0, 1:
		return "local " + g.name() + " = " + g.expression()
	case 2:
		return g.name() + " = " + g.expression()
	case 3:
		return "if " + g.expression() + " then " + g.block() + " else " + g.block() + " end"
	case 4, 5:
		return "local _ = " + g.call()
	case 6:
		return "(" + g.expression() + ")[" + g.expression() + "] = " + g.expression()
	case 7:
		return "pcall(function(...) " + g.block() + " end)"
	case 8:
		return fmt.Sprintf("for i = 1, %d do %s end", g.pick(300), g.block())
	case 9:
		return "for k, v in pairs(" + g.expression() + ") do " + g.block() + " end"
	case 10:
		return "while " + g.expression() + " do " + g.block() + " end"
	case 11:
		return "function " + g.name() + "() " + g.block() + " end"
	}
	return "repeat " + g.block() + " until " + g.expression()
}

// calmLoop returns a loop that a bounded script may have, or nearly.
func (g *grammar) calmLoop() string {
	head := g.oneOf("i = 1, 3", "i = 1, #KEYS", "a = 0, #ARGV, 2", "i = 3, 1, -1", "i = 1, a", "i, k in ipairs(KEYS)", "_, b in ipairs(ARGV)", "a, b in ipairs(KEYS)")
	call := g.oneOf("redis.call('get', k)", "redis.call('get', KEYS[i])", "redis.call('get', b)", "KEYS[i + 1] = 'x'", "a = a .. a", "break")
	return "for " + head + " do " + g.block() + " if b then " + call + " end end"
}

// script returns a whole script. Most of its names are locals.
func (g *grammar) script() string {
	var b strings.Builder
	b.WriteString("local a, b = 'x', 2 ")
	if g.pick(2) == 1 {
		b.WriteString("local c, d, e = {}, KEYS[1] ")
	}
	for range 2 + g.pick(6) {
		// An error ends most statements early. pcall lets the following ones run.
		if statement := g.statement(); g.calm || g.pick(4) == 0 {
			b.WriteString(statement)
		} else {
			b.WriteString("pcall(function(...) " + statement + " end)")
		}
		b.WriteString("\n")
	}
	b.WriteString("return " + g.expression())
	return b.String()
}
