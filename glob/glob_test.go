package glob

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true},
		{"", "a", false},
		{"*", "", true},
		{"*", "anything", true},
		{"**", "x", true},
		{"?", "", false},
		{"?", "a", true},
		{"a*c", "abbbc", true},
		{"a*c", "abbbd", false},
		{"*a*b", "xaxbxb", true},
		{"user:*:calls", "user:42:calls", true},
		{"h?llo", "hello", true},
		{"h[ae]llo", "hallo", true},
		{"h[ae]llo", "hillo", false},
		{"h[^e]llo", "hallo", true},
		{"h[^e]llo", "hello", false},
		{"h[a-b]llo", "hbllo", true},
		{"h[b-a]llo", "hallo", true},
		{"[a-c-e]", "-", true},
		{"[\\]]", "]", true},
		{"[\\-a]", "-", true},
		{"[^\\^]", "^", false},
		{"[", "[", false},
		{"[a", "a", true},
		{"[^", "x", true},
		{"[a-", "a", true},
		{"[]", "a", false},
		{"a]", "a]", true},
		{"\\*", "*", true},
		{"\\*", "x", false},
		{"\\", "\\", true},
		{"a\\", "a\\", true},
		{"\\\\", "\\", true},
		{"\x00*\xff", "\x00--\xff", true},
		{"A", "a", false},
	} {
		require.Equal(t, c.want, Match([]byte(c.pattern), []byte(c.text)), "%q %q", c.pattern, c.text)
	}
}

// naiveGlob is the simplest matcher: a star tries every length.
func naiveGlob(pattern, text string) bool {
	if pattern == "" {
		return text == ""
	}
	if pattern[0] == '*' {
		return naiveGlob(pattern[1:], text) || text != "" && naiveGlob(pattern, text[1:])
	}
	if text == "" {
		return false
	}
	switch {
	case pattern[0] == '?':
		return naiveGlob(pattern[1:], text[1:])
	case pattern[0] == '[':
		ok, rest := naiveClass(pattern[1:], text[0])
		return ok && naiveGlob(rest, text[1:])
	case pattern[0] == '\\' && len(pattern) > 1:
		pattern = pattern[1:]
	}
	return pattern[0] == text[0] && naiveGlob(pattern[1:], text[1:])
}

// naiveClass parses a bracket expression after its bracket, as Redis' documentation and tests
// define it.
func naiveClass(p string, c byte) (ok bool, rest string) {
	not := strings.HasPrefix(p, "^")
	p = strings.TrimPrefix(p, "^")
	in := false
	for p != "" && p[0] != ']' {
		switch {
		case p[0] == '\\' && len(p) >= 2:
			in = in || p[1] == c
			p = p[2:]
		case len(p) >= 3 && p[1] == '-':
			in = in || min(p[0], p[2]) <= c && c <= max(p[0], p[2])
			p = p[3:]
		default:
			in = in || p[0] == c
			p = p[1:]
		}
	}
	return in != not, strings.TrimPrefix(p, "]")
}

// TestAgreesWithNaiveMatcher draws patterns from the characters with a meaning.
func TestAgreesWithNaiveMatcher(t *testing.T) {
	signs := rapid.StringOfN(rapid.RuneFrom([]rune(`ab*?[]^-\`)), 0, 8, -1)
	text := rapid.StringOfN(rapid.RuneFrom([]rune(`ab-^]\`)), 0, 8, -1)
	rapid.Check(t, func(t *rapid.T) {
		p, s := signs.Draw(t, "pattern"), text.Draw(t, "text")
		require.Equal(t, naiveGlob(p, s), Match([]byte(p), []byte(s)), "%q %q", p, s)
	})
}

func FuzzMatch(f *testing.F) {
	for _, seed := range []string{"h[^e]*o\x00hello", "[a-\x00a", "*\\*?\x00a*b", "[\x00["} {
		p, s, _ := strings.Cut(seed, "\x00")
		f.Add(p, s)
	}
	f.Fuzz(func(t *testing.T, p, s string) {
		if strings.Count(p, "*") > 4 || len(p) > 64 || len(s) > 64 {
			return // the naive matcher is exponential in the stars
		}
		require.Equal(t, naiveGlob(p, s), Match([]byte(p), []byte(s)), "%q %q", p, s)
	})
}

// TestManyStarsAreNoAttack matches patterns of up to 1,000 stars against a key of 1 KiB. It
// measures no time: with a matcher that tries everything it would never end.
func TestManyStarsAreNoAttack(t *testing.T) {
	key := bytes.Repeat([]byte("a"), 1<<10)
	require.False(t, Match([]byte(strings.Repeat("*a", MaxPattern/2-1)+"b"), key))
	require.False(t, Match([]byte(strings.Repeat("*?", 500)+"b"), key))
	require.True(t, Match(bytes.Repeat([]byte("*"), MaxPattern), key))
	require.False(t, Match([]byte("*"+strings.Repeat("a", MaxPattern-2)+"b"), key))
}
