//go:build real

package lua_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/lua"
	"github.com/cellserver/cellserver/resp"
)

// programs generates small programs with constructs that the interpreter's compiler gets wrong:
// constants as conditions, loops that begin with them, and assignments to parameters.
type programs struct{ random *rand.Rand }

func (p programs) one(words ...string) string { return words[p.random.IntN(len(words))] }

func (p programs) expression(depth int) string {
	if depth == 0 || p.random.IntN(3) == 0 {
		return p.one("nil", "false", "true", "1", "'x'", "a", "b", "c", "none.x", "swap(a)", "swap()", "(...)")
	}
	left := p.expression(depth - 1)
	switch p.random.IntN(8) {
	case 0:
		return "not " + left
	case 1:
		return "(" + left + " == " + p.expression(depth-1) + ")"
	case 2:
		return "(" + left + ")"
	case 3:
		return "swap(" + left + ", " + p.expression(depth-1) + ")"
	}
	return left + p.one(" and ", " or ") + p.expression(depth-1)
}

func (p programs) block(depth int) string {
	s := p.statement(depth) + " "
	if p.random.IntN(2) == 0 {
		s += p.statement(depth) + " "
	}
	return s
}

// statement returns a statement that always ends, however it is nested: again() returns true only a
// few times.
func (p programs) statement(depth int) string {
	assignment := p.one("a", "b", "c") + " = " + p.expression(2)
	if depth == 0 {
		return p.one("n = n + 1", assignment, "local x = "+p.expression(2))
	}
	body := p.block(depth - 1)
	switch p.random.IntN(9) {
	case 0:
		return "if " + p.expression(2) + " then " + body + "end"
	case 1:
		return "if " + p.expression(2) + " then " + body + "else " + p.block(depth-1) + "end"
	case 2:
		return "while again() and (" + p.expression(1) + ") do " + body + "end"
	case 3:
		return "repeat " + body + "until not again() or " + p.expression(1)
	case 4:
		return "for i = 1, 2 do " + body + "end"
	case 5:
		return "for i in ipairs({1, 2}) do " + body + "end"
	case 6:
		return "do " + body + "end"
	case 7:
		return "while " + p.one("true", "1", "not nil", "not false and 'x'", "nil", "1 and true") + " do " + body + "if not again() then break end end"
	}
	return assignment
}

// program returns a program that has body twice: in a function with its last variable as a
// parameter, and in one where that variable belongs to an enclosing function.
func (p programs) program() string {
	body := p.block(3)
	inner := strings.ReplaceAll(body, "(...)", "swap(c)")
	return "local n, k, none = 0, 0, {} local function again() k = k + 1 return k < 9 end local function swap(x, y) return y, x end " +
		"local function one(b, c, ...) local a = 3 " + body + "return a, b, c, n end " +
		"local function two(b, c) local function inner(a) " + inner + "return a, b, c, n end return inner(7) end " +
		"local r = {} for _, f in ipairs({one, two}) do local t = {f(4, 5, 6, 7)} for i = 1, 4 do r[#r + 1] = tostring(t[i]) end end return r"
}

// TestRandomProgramsAnswerAsRedis compares random programs with a real Redis at
// REDIS_ADDR=host:port. REDIS_PROGRAMS is the number of programs.
func TestRandomProgramsAnswerAsRedis(t *testing.T) {
	addr := os.Getenv("REDIS_ADDR")
	if addr == "" {
		t.Skip("REDIS_ADDR names no Redis to compare with")
	}
	count, err := strconv.Atoi(os.Getenv("REDIS_PROGRAMS"))
	if err != nil {
		count = 2000
	}
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	in := bufio.NewReader(conn)
	pool := lua.NewPool(lua.DefaultLimits())
	for seed := range uint64(count) {
		source := programs{rand.New(rand.NewPCG(seed, 5))}.program()
		script, err := lua.Compile([]byte(source))
		require.NoError(t, err, source)
		r := pool.Get()
		r.PauseAfter(1<<16, nil)
		var w resp.Writer
		r.Execute(script, nil, nil, &echo{}, &w)
		pool.Put(r)
		_, err = fmt.Fprintf(conn, "*3\r\n$4\r\nEVAL\r\n$%d\r\n%s\r\n$1\r\n0\r\n", len(source), source)
		require.NoError(t, err)
		require.Equal(t, readReply(t, in), string(w.Buf), source)
	}
}
