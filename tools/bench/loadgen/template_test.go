package loadgen_test

import (
	"strings"
	"testing"

	"github.com/cellserver/cellserver/tools/bench/loadgen"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var one = loadgen.Shape{MinQuantity: 1, MaxQuantity: 1}

func TestTemplateEncodes(t *testing.T) {
	for _, c := range []struct {
		text  string
		shape loadgen.Shape
		want  string
	}{
		{"PING", one, "*1\r\n$4\r\nPING\r\n"},
		{
			"CL.THROTTLE user:{key} 15 30 60 {q}",
			loadgen.Shape{KeyWidth: 6, MinQuantity: 3, MaxQuantity: 12},
			"*6\r\n$11\r\nCL.THROTTLE\r\n$11\r\nuser:000042\r\n$2\r\n15\r\n$2\r\n30\r\n$2\r\n60\r\n$1\r\n5\r\n",
		},
		{"SET {key}{key} '{data}'", loadgen.Shape{KeyWidth: 3, DataSize: 4, MinQuantity: 1, MaxQuantity: 9}, "*3\r\n$3\r\nSET\r\n$6\r\n042042\r\n$4\r\nxxxx\r\n"},
		{"CC.ACQUIRE {tag}:k 1 60 m{seq}", one, "*5\r\n$10\r\nCC.ACQUIRE\r\n$7\r\n{tag}:k\r\n$1\r\n1\r\n$2\r\n60\r\n$17\r\nm0000000000000007\r\n"},
		{`SET "a b\x00\n" ''`, one, "*3\r\n$3\r\nSET\r\n$5\r\na b\x00\n\r\n$0\r\n\r\n"},
	} {
		template, err := loadgen.ParseTemplate(c.text, c.shape)
		require.NoError(t, err, c.text)
		pick := 0
		if strings.Contains(c.text, "{q}") {
			pick = 2
		}
		require.Equal(t, c.want, template.Encode(42, 7, pick), c.text)
	}
}

func TestTemplateKeepsEveryKeyApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, 40).Draw(t, "width")
		key := rapid.Uint64().Draw(t, "key")
		template, err := loadgen.ParseTemplate("GET {key}", loadgen.Shape{KeyWidth: width, MinQuantity: 1, MaxQuantity: 1})
		require.NoError(t, err)
		lines := strings.Split(template.Encode(key, 0, 0), "\r\n")
		digits := lines[len(lines)-2]
		require.Len(t, digits, width)
		want := strings.Repeat("0", 40) + uintText(key)
		require.Equal(t, want[len(want)-width:], digits)
	})
}

func uintText(n uint64) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return uintText(n/10) + string(rune('0'+n%10))
}

func TestTemplateRefuses(t *testing.T) {
	for text, shape := range map[string]loadgen.Shape{
		"":              one,
		"  ":            one,
		`GET "a`:        one,
		`GET "a"b`:      one,
		"0:PING":        one,
		"9999999:PING":  one,
		"5:":            one,
		"GET {key}":     {KeyWidth: -1, MinQuantity: 1, MaxQuantity: 1},
		"GET {key} w":   {KeyWidth: 9999, MinQuantity: 1, MaxQuantity: 1},
		"GET {key} q":   {MinQuantity: 2, MaxQuantity: 1},
		"GET {key} q q": {MinQuantity: -1 << 63, MaxQuantity: 1<<63 - 1},
		"GET {data}":    {MinQuantity: 1, MaxQuantity: 1, DataSize: -1},
	} {
		_, err := loadgen.ParseTemplate(text, shape)
		require.Error(t, err, "%q", text)
	}
}

func TestSplitWords(t *testing.T) {
	for text, want := range map[string][]string{
		"":                 nil,
		" a  b\t c\n":      {"a", "b", "c"},
		`'a b' "c d"`:      {"a b", "c d"},
		`'it\'s' "a\"b"`:   {"it's", `a"b`},
		`"\x41\r\n\t\\ "`:  {"A\r\n\t\\ "},
		`"\xzz\q"`:         {"xzzq"},
		`'\n'`:             {`\n`},
		"{key}:x user:{q}": {"{key}:x", "user:{q}"},
	} {
		words, err := loadgen.SplitWords(text)
		require.NoError(t, err, text)
		require.Equal(t, want, words, text)
	}
}

func FuzzSplitWords(f *testing.F) {
	for _, s := range []string{"", "a b", `"\x41`, `'a' "b" c`, `"a"b`, `\`, `"\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		words, err := loadgen.SplitWords(s)
		if err != nil || strings.ContainsAny(s, `"'`) {
			return
		}
		require.Equal(t, strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t\r\n", r) }), append([]string{}, words...))
	})
}

func TestMixFollowsWeights(t *testing.T) {
	mix, err := loadgen.ParseMix([]string{"3:GET {key}", "TTL {key}", "6: SET {key} {q}"}, loadgen.Shape{MinQuantity: 0, MaxQuantity: 9})
	require.NoError(t, err)
	const draws = 100_000
	commands, picks := mix.Draw(1, draws)
	for i, share := range []float64{0.3, 0.1, 0.6} {
		require.InDelta(t, share*draws, commands[i], 0.01*draws)
	}
	require.InDelta(t, 4.5*0.6*draws, picks, 0.02*4.5*draws, "quantities are drawn evenly")
	require.Equal(t, "SET {key} {q}", mix.Templates()[2].String())

	_, err = loadgen.ParseMix(nil, one)
	require.Error(t, err)
	_, err = loadgen.ParseMix([]string{"PING", "'"}, one)
	require.Error(t, err)
}
