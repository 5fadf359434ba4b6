package lua_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/lua"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/shared"
)

// store replies to every command with its values, nested at random. If it has a ledger it lends
// long values.
type store struct {
	echo
	values [][]byte
	ledger shared.Ledger
	seed   uint64
}

func (s *store) Call(_ [][]byte, proto int) ([]byte, []shared.Ref) {
	w := resp.Writer{Proto: proto, Ledger: s.ledger}
	random := rand.New(rand.NewPCG(s.seed, 1))
	var write func(depth int)
	write = func(depth int) {
		switch kind := random.IntN(6); {
		case kind == 0:
			w.Int(int64(random.IntN(1000)))
		case kind == 1 && depth > 0:
			w.Map(1)
			w.Bulk([]byte("name"))
			write(depth + 1)
		case kind < 4 && depth < 4:
			n := random.IntN(4)
			w.Array(n)
			for range n {
				write(depth + 1)
			}
		default:
			w.Element(s.values[random.IntN(len(s.values))])
		}
	}
	write(0)
	return w.Buf, w.Refs
}

// whole returns a reply as the client gets it.
func whole(w *resp.Writer) string {
	var b strings.Builder
	from := 0
	for _, r := range w.Refs {
		b.Write(w.Buf[from:r.At])
		b.Write(r.Bytes)
		from = r.At
	}
	b.Write(w.Buf[from:])
	return b.String()
}

func values(sizes ...int) (list [][]byte) {
	for i, size := range sizes {
		list = append(list, shared.New(bytes.Repeat([]byte{byte('a' + i)}, size), 0))
	}
	return list
}

// TestLentValuesReadAsCopies: a script that gets a value without a copy sees and returns the same
// as with a copy.
func TestLentValuesReadAsCopies(t *testing.T) {
	long := values(3, shared.Least-1, shared.Least, 70_000)
	pool := lua.NewPool(lua.DefaultLimits())
	for _, source := range []string{
		"return redis.call('x')",
		"local r = redis.call('x') return r",
		"redis.call('x') return redis.call('x')",
		"redis.setresp(3) local r = redis.call('x') return {r, r}",
		"local r = redis.call('x') if type(r) == 'string' then return {#r, r:sub(2), r .. '', r:upper(), r:sub(5, 20000)} end return r",
	} {
		script, err := lua.Compile([]byte(source))
		require.NoError(t, err)
		for seed := range uint64(100) {
			for _, proto := range []int{2, 3} {
				var replies [2]string
				for i, ledger := range []shared.Ledger{nil, kept{}} {
					w := resp.Writer{Proto: proto, Ledger: kept{}}
					r := pool.Get()
					r.Execute(script, nil, nil, &store{values: long, ledger: ledger, seed: seed}, &w)
					pool.Put(r)
					replies[i] = whole(&w)
					shared.ReleaseAll(w.Refs)
				}
				require.Equal(t, replies[0], replies[1], "%s, seed %d", source, seed)
				for _, v := range long {
					require.False(t, shared.Busy(v), "%s, seed %d", source, seed)
				}
			}
		}
	}
}

// lender replies with one value, which it lends.
type lender struct {
	echo
	value  []byte
	breaks bool // panics instead of a second reply
	calls  int
}

func (l *lender) Call([][]byte, int) ([]byte, []shared.Ref) {
	if l.calls++; l.breaks && l.calls > 1 {
		panic("broken")
	}
	w := resp.Writer{Ledger: kept{}}
	w.Element(l.value)
	return w.Buf, w.Refs
}

// TestScriptsCopyNoLongValues: when a script returns a value or a part of it, the reply refers to
// the keyspace's own memory. After the script only the reply keeps it.
func TestScriptsCopyNoLongValues(t *testing.T) {
	value := values(1_000_000)[0]
	pool := lua.NewPool(lua.DefaultLimits())
	for source, spans := range map[string][][2]int{
		"return redis.call('x')":                                         {{0, 1_000_000}},
		"local v = redis.call('x') return {v, v:sub(11, 50010), v}":      {{0, 1_000_000}, {10, 50010}, {0, 1_000_000}},
		"local v = redis.call('x') redis.call('x') return v:sub(-20000)": {{980_000, 1_000_000}},
		"local v = redis.call('x') return #v":                            nil,
		"local v = redis.call('x') error('no')":                          nil,
	} {
		script, err := lua.Compile([]byte(source))
		require.NoError(t, err)
		r := pool.Get()
		w := resp.Writer{Ledger: kept{}}
		r.Execute(script, nil, nil, &lender{value: value}, &w)
		pool.Put(r)
		require.Len(t, w.Refs, len(spans), source)
		require.Equal(t, len(spans) > 0, shared.Busy(value), source)
		for i, span := range spans {
			require.Len(t, w.Refs[i].Bytes, span[1]-span[0], source)
			require.Same(t, &value[span[0]], &w.Refs[i].Bytes[0], source)
		}
		shared.ReleaseAll(w.Refs)
		require.False(t, shared.Busy(value), source)
	}
}

// TestLentValuesAreFreeAfterAPanic: after a panic in a command no value counts as being read any
// more.
func TestLentValuesAreFreeAfterAPanic(t *testing.T) {
	value := values(100_000)[0]
	script, err := lua.Compile([]byte("local v = redis.call('x') redis.call('x') return v"))
	require.NoError(t, err)
	r := lua.NewPool(lua.DefaultLimits()).Get()
	host := &lender{value: value, breaks: true}
	var w resp.Writer
	r.Execute(script, nil, nil, host, &w)
	require.True(t, bytes.HasPrefix(w.Buf, []byte("-ERR")), "%s", w.Buf)
	require.False(t, shared.Busy(value))
}
