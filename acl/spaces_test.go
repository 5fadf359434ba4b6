package acl_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/acl"
)

// TestFileKeepsSpacesOfOtherScripts: only ASCII spaces separate words. Other spaces, such as the
// wide space of Chinese text, are a part of a word, as in Redis.
func TestFileKeepsSpacesOfOtherScripts(t *testing.T) {
	for _, space := range []string{"\u0085", "\u00a0", "\u2003", "\u3000"} {
		us := acl.NewUsers(testWords())
		_, _, err := us.Set("a"+space+"b", []string{"on", "~k" + space + "*", "(~s" + space + "x +get)"})
		require.NoError(t, err)
		again := acl.NewUsers(testWords())
		parsed, err := again.ParseFile("users.acl", []byte(strings.Join(us.List(), "\n")+"\n"))
		require.NoError(t, err, "%q", space)
		again.Replace(parsed)
		require.Equal(t, us.List(), again.List())
	}
}

// TestRulesAreReadAsTheyWereWritten: no rule can end its word, its selector or its line in a file,
// where the rest would become another rule or another user.
func TestRulesAreReadAsTheyWereWritten(t *testing.T) {
	for _, rules := range [][]string{
		{"+get|a b"},
		{"+get|1\nuser evil on nopass +@all"},
		{"+get|a\x00b"},
		{"+get|a\r"},
		{"(~a) +get)"},
		{"(~a) ~b", "+get)"},
		{"(~a +get|x) +get)"},
		{"(~a\n) +get|\v)"},
		{"(~a &b) )"},
		{"+get|x)"},
		{"(~a( +get|(x )"},
		{"~a)", "(~a", "+get)"},
	} {
		us := acl.NewUsers(testWords())
		if _, _, err := us.Set("u", rules); err != nil {
			require.ErrorContains(t, err, "Syntax error", "%q", rules)
			require.Equal(t, []string{acl.DefaultUser}, us.Names())
			continue
		}
		again := acl.NewUsers(testWords())
		parsed, err := again.ParseFile("users.acl", []byte(strings.Join(us.List(), "\n")+"\n"))
		require.NoError(t, err, "%q", rules)
		again.Replace(parsed)
		require.Equal(t, us.List(), again.List(), "%q", rules)
	}
}
