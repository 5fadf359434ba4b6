package lua_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/lua"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/shared"
)

// echo replies to the few commands that the recorded expressions call.
type echo struct {
	reply []byte
	data  map[string]string
}

func (e *echo) Log(int, []byte) {}

func (e *echo) Call(args [][]byte, proto int) ([]byte, []shared.Ref) {
	w := resp.Writer{Buf: e.reply[:0], Proto: proto}
	arg := func(i int) string {
		if i < len(args) {
			return string(args[i])
		}
		return ""
	}
	switch strings.ToLower(arg(0)) {
	case "echo":
		if len(args) != 2 {
			w.Error("ERR Wrong number of args calling Redis command from script")
			break
		}
		w.Bulk(args[1])
	case "set":
		if e.data == nil {
			e.data = map[string]string{}
		}
		e.data[arg(1)] = arg(2)
		w.OK()
	case "get":
		if v, ok := e.data[arg(1)]; ok {
			w.BulkString(v)
		} else {
			w.Null()
		}
	case "mget":
		w.Array(len(args) - 1)
		for _, k := range args[1:] {
			if v, ok := e.data[string(k)]; ok {
				w.BulkString(v)
			} else {
				w.Null()
			}
		}
	case "del":
		delete(e.data, arg(1))
		w.Int(1)
	case "incr":
		if _, ok := e.data[arg(1)]; ok {
			w.Error("ERR value is not an integer or out of range")
		} else {
			w.Int(1)
		}
	default:
		w.Error("ERR Unknown Redis command called from script")
	}
	e.reply = w.Buf
	return w.Buf, nil
}

// runIn executes source and returns the raw reply.
func runIn(pool *lua.Pool, source string, args ...string) string {
	script, err := lua.Compile([]byte(source))
	if err != nil {
		return "-" + err.Error() + "\r\n"
	}
	r := pool.Get()
	defer pool.Put(r)
	var w resp.Writer
	argv := make([][]byte, len(args))
	for i, a := range args {
		argv[i] = []byte(a)
	}
	r.Execute(script, nil, argv, &echo{}, &w)
	return string(w.Buf)
}

const recording = "testdata/redis-7.0.15.txt"

func expressions(t *testing.T) []string {
	text, err := os.ReadFile("testdata/expressions.txt")
	require.NoError(t, err)
	var list []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if line != "" && !strings.HasPrefix(line, "#") {
			list = append(list, strings.ReplaceAll(line, "⏎", "\n"))
		}
	}
	return list
}

// TestRedisAnswersTheSame compares results of expressions with recorded replies of Redis.
// TestRecordAnswersOfRedis records them again.
func TestRedisAnswersTheSame(t *testing.T) {
	text, err := os.ReadFile(recording)
	require.NoError(t, err)
	cases := slices.Collect(strings.Lines(string(text)))
	require.Greater(t, len(cases), 600)
	pool := lua.NewPool(lua.DefaultLimits())
	for _, c := range cases {
		source, reply, found := strings.Cut(strings.TrimSuffix(c, "\n"), "\t")
		require.True(t, found)
		source, reply = unquote(t, source), unquote(t, reply)
		t.Run("", func(t *testing.T) {
			got := runIn(pool, source)
			if head, _, found := strings.Cut(reply, syntaxError); found {
				// The text of syntax errors differs.
				require.Equal(t, head+syntaxError, got[:min(len(got), len(head+syntaxError))], source)
				return
			}
			if newer, is := as72[source]; is {
				require.NotEqual(t, newer, reply, "it is as 7.0 answers, too")
				reply = newer
			}
			require.Equal(t, reply, got, source)
		})
	}
}

// as72 has the replies to numbers passed to redis.call in the format of Redis 7.2: with the fewest
// digits that parse to the same number. The recording is of 7.0, which writes 17 digits.
var as72 = map[string]string{
	"return redis.call('echo',1e17)":  "$18\r\n100000000000000000\r\n",
	"return redis.call('echo',0.1)":   "$3\r\n0.1\r\n",
	"return redis.call('echo',1e300)": "$6\r\n1e+300\r\n",
	"return redis.call('echo',1/3)":   "$18\r\n0.3333333333333333\r\n",
}

const syntaxError = "-ERR Error compiling script (new function): user_script:"

func unquote(t *testing.T, s string) string {
	t.Helper()
	text, err := strconv.Unquote(s)
	require.NoError(t, err)
	return text
}
