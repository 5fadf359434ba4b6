//go:build real

package compat_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/script"
)

// prelude is in front of every random program: functions that take whatever they are
// given, so that few programs end early, and say, which tells what has been computed.
const prelude = `local o, fs, q = {}, {}, {1, 2}
local function n(x) if type(x) == 'number' and x == x and x < 1e15 and x > -1e15 then return x end return 1 end
local function s(x) if type(x) == 'string' then return x:sub(1, 20) end return type(x) end
local function t(x) if type(x) == 'table' then return x end return {7, k = 8} end
local function f(...) return ... end
local function g(a, b) return b, a end
local function z() end
local function h(a, b, c) o[#o + 1] = 'h' return c, b, a end
local m = {v = 3} function m:x(a, b) return a, self.v, b end function m.y(a) return a end
local function one(v) if type(v) == 'table' or type(v) == 'function' then return type(v) end return v == 0 and 'zero' or tostring(v) end
local function show(v)
	if type(v) ~= 'table' then return one(v) end
	local p = {one(v.k), one(v.a)} for i = 1, 6 do p[i + 2] = one(v[i]) end
	return '{' .. table.concat(p, ',') .. '}'
end
local function say(...) for i = 1, select('#', ...) do o[#o + 1] = show((select(i, ...))) end o[#o + 1] = ';' end
`

// programmer writes random programs in Lua.
type programmer struct {
	roulette
	locals      []string
	named       int
	depth, most int
	vararg      bool
	loops       int
}

func (p *programmer) program() string {
	var b strings.Builder
	b.WriteString(prelude)
	for range 2 + p.IntN(6) {
		b.WriteString(p.statement() + "\n")
	}
	b.WriteString("say(" + strings.Join(append([]string{p.any(), p.any()}, p.locals[max(0, len(p.locals)-8):]...), ", ") + ")\n")
	b.WriteString("for i = 1, math.min(#fs, 20) do say(fs[i](i)) end say(q, m.w) return table.concat(o, ' ')")
	return b.String()
}

// down goes a level deeper for as long as f runs, and reports how deep is too deep.
func (p *programmer) down(f func(deep bool) string) string {
	p.depth++
	defer func() { p.depth-- }()
	return f(p.depth >= p.most)
}

func (p *programmer) variable() string {
	if len(p.locals) == 0 {
		return "nil"
	}
	if p.IntN(4) == 0 {
		return p.locals[len(p.locals)-1]
	}
	return p.locals[p.IntN(len(p.locals))]
}

func (p *programmer) fresh(prefix string) string {
	p.named++
	return fmt.Sprint(prefix, p.named)
}

func (p *programmer) number() string {
	return p.down(func(deep bool) string {
		c := p.IntN(12)
		switch {
		case deep || c < 2:
			return p.one("1", "2", "3", "7", "0.5", "-1")
		case c < 6:
			return "(" + p.number() + p.one(" + ", " - ", " * ") + p.number() + ")"
		case c < 8:
			return "n(" + p.any() + ")"
		case c == 8:
			return "#s(" + p.any() + ")"
		case c == 9:
			return "(" + p.number() + " % 7)"
		case c == 10:
			return "n((" + p.call() + "))"
		}
		return "select('#', " + p.values(1) + ")"
	})
}

func (p *programmer) table() string {
	return p.down(func(bool) string {
		var fields []string
		if p.IntN(30) == 0 {
			for i := range []int{49, 50, 51, 100}[p.IntN(4)] {
				fields = append(fields, fmt.Sprint(i))
			}
		}
		for range p.IntN(5) {
			switch p.IntN(4) {
			case 0:
				fields = append(fields, p.one("k", "a")+" = "+p.any())
			case 1:
				fields = append(fields, "["+p.one("1.5", "'k'", "true")+"] = "+p.any())
			default:
				fields = append(fields, p.any())
			}
		}
		if p.IntN(3) == 0 {
			fields = append(fields, p.call())
		}
		return "{" + strings.Join(fields, ", ") + "}"
	})
}

// values returns a list of at least n expressions.
func (p *programmer) values(least int) string {
	list := make([]string, least+p.IntN(3))
	for i := range list {
		list[i] = p.any()
	}
	return strings.Join(list, ", ")
}

func (p *programmer) call() string {
	return p.down(func(deep bool) string {
		switch c := p.IntN(10); {
		case c < 4:
			return p.one("f", "g", "h", "m.y", "z") + "(" + p.values(0) + ")"
		case c == 4:
			return "m:x(" + p.values(0) + ")"
		case c == 5:
			return p.one("(nil or f)", "(false or g)", "(f and g)") + "(" + p.values(0) + ")"
		case c == 6:
			return "unpack(" + p.table() + ", 1, 3)"
		case c == 7 && !deep:
			return "(" + p.function() + ")(" + p.values(0) + ")"
		case c == 8:
			return "select(" + p.one("1", "2", "-1") + ", " + p.values(1) + ")"
		}
		return "f(" + p.values(0) + ")"
	})
}

func (p *programmer) function() string {
	locals, vararg, loops := p.locals, p.vararg, p.loops
	defer func() { p.locals, p.vararg, p.loops = locals, vararg, loops }()
	p.vararg, p.loops = p.IntN(2) == 0, 0
	var parameters []string
	for range p.IntN(3) {
		parameters = append(parameters, p.fresh("p"))
	}
	p.locals = append(locals[:len(locals):len(locals)], parameters...)
	if p.vararg {
		parameters = append(parameters, "...")
	}
	body := ""
	for range p.IntN(3) {
		body += p.statement() + " "
	}
	if p.IntN(4) > 0 {
		body += "return " + p.values(0)
	}
	return "function(" + strings.Join(parameters, ", ") + ") " + body + " end"
}

func (p *programmer) any() string {
	return p.down(func(deep bool) string {
		c := p.IntN(22)
		switch {
		case deep:
			return p.one("nil", "true", "false", "1", "'q'", p.variable(), p.variable())
		case c < 3:
			return p.variable()
		case c < 5:
			return p.number()
		case c == 5:
			return "(s(" + p.any() + ") .. s(" + p.any() + "))"
		case c == 6:
			return p.table()
		case c < 9:
			return p.call()
		case c < 11:
			return "(" + p.call() + ")"
		case c < 16:
			return "(" + p.any() + p.one(" and ", " or ") + p.any() + ")"
		case c == 16:
			return "not " + p.any()
		case c == 17:
			return "(" + p.number() + p.one(" < ", " > ", " <= ", " >= ", " == ", " ~= ") + p.number() + ")"
		case c == 18:
			return "(" + p.any() + p.one(" == ", " ~= ") + p.any() + ")"
		case c == 19:
			return "(t(" + p.any() + "))[" + p.one("1", "2", "'k'") + "]"
		case c == 20:
			return "(" + p.table() + ").k"
		case p.vararg:
			return "..."
		}
		return p.variable()
	})
}

func (p *programmer) block() string {
	locals := p.locals
	defer func() { p.locals = locals }()
	p.locals = locals[:len(locals):len(locals)]
	body := ""
	for range 1 + p.IntN(3) {
		body += p.statement() + " "
	}
	if p.loops > 0 && p.IntN(5) == 0 {
		body += "if " + p.any() + " then break end"
	}
	return body
}

// body is the block of a loop, with some names of its own.
func (p *programmer) body(names ...string) string {
	locals := p.locals
	defer func() { p.locals, p.loops = locals, p.loops-1 }()
	p.locals, p.loops = append(locals[:len(locals):len(locals)], names...), p.loops+1
	return p.block()
}

func (p *programmer) target() string {
	if p.IntN(4) > 0 && len(p.locals) > 0 {
		return p.variable()
	}
	return p.one("q[1]", "q[2]", "q.k", "m.w")
}

func (p *programmer) statement() string {
	return p.down(func(deep bool) string {
		c := p.IntN(20)
		if deep {
			c = p.IntN(9)
		}
		switch {
		case c < 3 && len(p.locals) < 40:
			values, name := p.values(1), p.fresh("v")
			names := []string{name, p.fresh("v")}[:1+p.IntN(2)]
			p.locals = append(p.locals, names...)
			return "local " + strings.Join(names, ", ") + " = " + values + ";"
		case c < 7:
			targets := p.target()
			for range p.IntN(2) {
				targets += ", " + p.target()
			}
			return targets + " = " + p.values(1) + ";"
		case c == 7:
			if len(p.locals) == 0 {
				return "h(" + p.values(0) + ");"
			}
			return p.locals[len(p.locals)-1] + " = " + p.one("("+p.call()+")", "s("+p.any()+") .. s("+p.any()+")") + ";"
		case c == 8 || deep:
			return "say(" + p.values(1) + ");"
		case c == 9:
			name := p.fresh("v")
			function := p.function()
			p.locals = append(p.locals, name)
			return p.one("local "+name+" = "+function, "local function "+name+strings.TrimPrefix(function, "function")) + ";"
		case c == 10:
			return "if #fs > 0 and #fs < 60 then say(fs[n(" + p.number() + ") % #fs + 1](" + p.values(0) + ")) end;"
		case c == 11:
			return "if " + p.any() + " then " + p.block() + " elseif " + p.any() + " then " + p.block() + " else " + p.block() + " end;"
		}
		return p.loop()
	})
}

// loop is a statement that repeats others, mostly with a closure that outlives a turn.
func (p *programmer) loop() string {
	i, v := p.fresh("i"), p.fresh("v")
	switch p.IntN(6) {
	case 0:
		return "for " + i + " = " + p.one("1, 3", "3, 1, -1", "1, 2, 0.5", "0, 1", "1, #{7, 8, k = "+p.any()+"}") +
			" do fs[#fs + 1] = function(...) return " + i + ", ... end " + p.body(i) + " end;"
	case 1:
		return "for " + i + ", " + v + " in ipairs(" + p.table() + ") do fs[#fs + 1] = function() return " + v + " end " + p.body(i, v) + " end;"
	case 2:
		return "for _ in pairs({" + p.values(0) + "}) do " + p.body() + " end;"
	case 3:
		return "local " + i + " = 0; repeat local " + v + " = " + p.any() + "; " + i + " = " + i + " + 1; fs[#fs + 1] = function() " +
			v + " = n(" + v + ") + 1 return " + v + " end " + p.body(v) + " until " + i + " > 2 or " + p.any() + ";"
	case 4:
		return "local " + i + " = 0; repeat " + i + " = " + i + " + 1; " + p.body() + " until " + i + " > 2 or " + p.any() + ";"
	}
	return "local " + i + " = 0; while " + i + " < 3 and " + p.any() + " do " + i + " = " + i + " + 1; local " + v + " = " + p.any() + "; " + p.body(v) + " end;"
}

// TestProgramsAgainstRedis has Redis and us run the same random programs. Errors of the
// interpreter are worded otherwise, and the sign of a zero differs.
func TestProgramsAgainstRedis(t *testing.T) {
	w := startTwins(t, "2")
	finished := 0
	const programs = 3000
	for seed := range uint64(programs) {
		r := roulette{rand.New(rand.NewPCG(seed, 7))}
		p := programmer{roulette: r, vararg: true, most: 3 + r.IntN(4)}
		source := p.program()
		if len(source) > 30_000 {
			continue
		}
		theirs, ours := w.ask(t, "EVAL", source, "0")
		if theirs.Type == '-' {
			require.Equal(t, "-", string(ours.Type), "%d: %s\n%s", seed, ours.Text, source)
			continue
		}
		finished++
		plain := func(v script.Value) string { return strings.ReplaceAll(v.Text, "-0", "0") }
		require.Equal(t, plain(theirs), plain(ours), "%d:\n%s", seed, source)
	}
	require.Greater(t, finished, programs/2)
}
