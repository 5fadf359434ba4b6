package acl_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/internal/effort"
)

func TestAuthenticate(t *testing.T) {
	us := acl.NewUsers(testWords())
	_, _, err := us.Set("app", []string{"on", ">one", ">two"})
	require.NoError(t, err)
	_, _, err = us.Set("gone", []string{"off", ">one"})
	require.NoError(t, err)
	for _, c := range []struct {
		name, password string
		ok             bool
	}{
		{"app", "one", true},
		{"app", "two", true},
		{"app", "three", false},
		{"app", "", false},
		{"gone", "one", false},
		{"nobody", "one", false},
		{"default", "anything", true},
	} {
		u, ok := us.Authenticate(c.name, []byte(c.password))
		require.Equal(t, c.ok, ok, c)
		if c.ok {
			require.Equal(t, c.name, u.Name)
		} else {
			require.Nil(t, u)
		}
	}
	_, ok := us.ByName("gone")
	require.False(t, ok)
	_, ok = us.ByName("app")
	require.True(t, ok)
}

func TestPasswordOfDefault(t *testing.T) {
	us := acl.NewUsers(testWords())
	require.True(t, us.Default.Rules().Unrestricted)
	require.False(t, us.NeedsLogin())
	us.SetPassword("secret")
	require.True(t, us.NeedsLogin())
	_, ok := us.Authenticate("default", []byte("secret"))
	require.True(t, ok)
	require.True(t, us.Default.Rules().Unrestricted)
	us.SetPassword("")
	require.False(t, us.NeedsLogin())
	_, _, err := us.Set("default", []string{"off"})
	require.NoError(t, err)
	require.True(t, us.NeedsLogin())
}

// TestChangesAreSeen: a reference to a user sees its new rules.
func TestChangesAreSeen(t *testing.T) {
	us := acl.NewUsers(testWords())
	u, before, err := us.Set("app", []string{"+get"})
	require.NoError(t, err)
	require.Nil(t, before)
	require.True(t, u.Rules().Selectors()[0].Command(0, nil))
	same, before, err := us.Set("app", []string{"-get"})
	require.NoError(t, err)
	require.Same(t, u, same)
	require.True(t, before.Selectors()[0].Command(0, nil), "the rules before are as they were")
	require.False(t, u.Rules().Selectors()[0].Command(0, nil))
	require.Equal(t, []*acl.User{u}, us.Delete([]string{"app", "app", "nobody", "default"}))
	require.Equal(t, []string{"default"}, us.Names())
	_, _, err = us.Set("a b", nil)
	require.ErrorIs(t, err, acl.ErrUserName)
}

func TestFiles(t *testing.T) {
	us := acl.NewUsers(testWords())
	app, _, err := us.Set("app", []string{"+get"})
	require.NoError(t, err)
	old, _, err := us.Set("old", nil)
	require.NoError(t, err)
	_, err = us.ParseFile("users.acl", []byte("# a comment\n\nuser a on +foo %X~a nonsense -@bar\r\nusers b\nuser c (+get\nuser d\nuser d\nuser\nuser a\n"))
	require.EqualError(t, err, strings.Join([]string{
		"users.acl:4 should start with user keyword followed by the username",
		"users.acl:8 should start with user keyword followed by the username",
		"users.acl:3: Error in applying operation '+foo': Unknown command or category name in ACL",
		"users.acl:3: Syntax error",
		"users.acl:3: Error in applying operation '-@bar': Unknown command or category name in ACL",
		"users.acl:5: Unmatched parenthesis in selector definition",
		"WARNING: Duplicate user 'd' found on line 7",
		"WARNING: Duplicate user 'a' found on line 9",
	}, "\n"))
	_, err = us.ParseFile("users.acl", []byte(strings.Repeat("user\n", 1000)))
	require.ErrorContains(t, err, "900 more faults")
	require.Equal(t, []string{"app", "default", "old"}, us.Names(), "a file with faults changes nothing")

	parsed, err := us.ParseFile("users.acl", []byte("  user app  on >x +get\nuser new (+set ~a)\n"))
	require.NoError(t, err)
	require.ElementsMatch(t, []*acl.User{app, old}, us.Replace(parsed))
	require.Equal(t, []string{
		"user app on sanitize-payload #2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881 resetchannels -@all +get",
		"user default on nopass sanitize-payload ~* &* +@all",
		"user new off sanitize-payload resetchannels -@all (~a resetchannels -@all +set)",
	}, us.List())
	parsed, err = us.ParseFile("users.acl", []byte(strings.Join(us.List(), "\n")))
	require.NoError(t, err)
	require.Empty(t, us.Replace(parsed), "what is as it was is not changed")
}

func TestLog(t *testing.T) {
	var l acl.Log
	l.SetMax(3)
	add := func(object string, now int64) {
		l.Add(acl.LogEntry{Reason: acl.DeniedKey, Object: object, User: "app", Client: fmt.Sprint(now)}, now)
	}
	add("a", 0)
	add("b", 1)
	add("a", 60_000)
	entries := l.Newest(10)
	require.Len(t, entries, 2)
	require.Equal(t, acl.LogEntry{Count: 2, Reason: acl.DeniedKey, Object: "a", User: "app", Client: "60000", ID: 0, Created: 0, Updated: 60_000}, entries[0])
	add("a", 120_000)
	require.EqualValues(t, 3, l.Newest(1)[0].Count, "it is a minute from one to the next")
	add("a", 180_001)
	require.EqualValues(t, 1, l.Newest(1)[0].Count, "what is more than a minute old is another")
	add("c", 180_002)
	add(strings.Repeat("d", 1000), 180_003)
	require.Len(t, l.Newest(10), 3)
	require.Len(t, l.Newest(1)[0].Object, 256)
	l.SetMax(1)
	require.Len(t, l.Newest(10), 1)
	l.SetMax(0)
	add("e", 180_004)
	require.Empty(t, l.Newest(10))
	require.EqualValues(t, 8, l.Count(acl.DeniedKey))
	l.ResetCounts()
	require.Zero(t, l.Count(acl.DeniedKey))
}

// TestLogNamesAreCut: a client that is not logged in may send any name.
func TestLogNamesAreCut(t *testing.T) {
	var l acl.Log
	l.SetMax(1)
	l.Add(acl.LogEntry{Reason: acl.DeniedAuth, Object: "AUTH", User: strings.Repeat("u", 4000)}, 0)
	require.Len(t, l.Newest(1)[0].User, 256)
}

// TestFailedLoginsCompareAsMuch: an unknown name, a user that is off, one without a password and a
// wrong password take the same work.
func TestFailedLoginsCompareAsMuch(t *testing.T) {
	us := acl.NewUsers(testWords())
	for name, rules := range map[string][]string{"off": {"off", ">a"}, "none": {"on"}, "on": {"on", ">a", ">b"}, "some": {"on", ">1", ">2", ">3", ">4", ">5", ">6", ">7", ">8"}} {
		_, _, err := us.Set(name, rules)
		require.NoError(t, err)
	}
	for _, name := range []string{"unknown", "off", "none", "on", "some"} {
		require.Equal(t, 8, us.Compared(name, []byte("x")), name)
		_, ok := us.Authenticate(name, []byte("x"))
		require.False(t, ok)
		require.Zero(t, testing.AllocsPerRun(10, func() { us.Authenticate(name, []byte("x")) }), name)
	}
}

// TestUsersAreBounded: users that commands or files define take a bounded amount of memory, and of
// time for each rule.
func TestUsersAreBounded(t *testing.T) {
	effort.Alone(t)
	us := acl.NewUsers(testWords())
	many := func(n int, sign string) (words []string) {
		for i := range n {
			words = append(words, fmt.Sprint(sign, i))
		}
		return words
	}
	const tooMany, tooLarge = "Too many passwords, patterns, selectors or commands", "too many users, or rules that are too long"
	for sign, why := range map[string]string{">": tooMany, "~": tooMany, "&": tooMany, "+select|": tooMany} {
		_, _, err := us.Set("many", many(4096, sign))
		require.NoError(t, err, sign)
		_, _, err = us.Set("many", many(4097, sign))
		require.ErrorContains(t, err, why, sign)
	}
	_, _, err := us.Set("many", slices.Repeat([]string{"()"}, 4096))
	require.ErrorContains(t, err, tooMany, "the root is one, too")
	_, _, err = us.Set("many", slices.Repeat([]string{"+get"}, 1<<14+1))
	require.EqualError(t, err, tooLarge)
	_, _, err = us.Set("many", []string{"(" + strings.Repeat("+get ", 1<<14) + ")"})
	require.EqualError(t, err, tooLarge)
	_, _, err = us.Set("many", []string{"~" + strings.Repeat("a", 1<<20)})
	require.EqualError(t, err, tooLarge)
	long := []string{"reset", "~" + strings.Repeat("a", 1<<20-100)}
	_, _, err = us.Set("many", long)
	require.NoError(t, err)
	_, _, err = us.Set("many", long[1:])
	require.NoError(t, err, "it has that pattern already")
	_, _, err = us.Set("many", []string{"~" + strings.Repeat("b", 100)})
	require.EqualError(t, err, tooLarge)
	made := 0
	for err = nil; err == nil; made++ {
		_, _, err = us.Set(fmt.Sprint("u", made), long)
	}
	require.EqualError(t, err, tooLarge)
	require.InDelta(t, 128, made, 2, "256 MiB together, 2 MiB each")
	_, _, err = us.Set("u5", []string{"resetkeys"})
	require.NoError(t, err, "less is always allowed")
	_, _, err = us.Set("u5", long)
	require.NoError(t, err)
	us.Delete([]string{"u6"})
	_, _, err = us.Set("another", long)
	require.NoError(t, err, "who is gone takes nothing")
	parsed, err := us.ParseFile("f", nil)
	require.NoError(t, err)
	us.Replace(parsed)
	_, _, err = us.Set("another", long)
	require.NoError(t, err)

	var file strings.Builder
	for i := range acl.MaxUsers + 1 {
		fmt.Fprintf(&file, "user u%d\n", i)
	}
	_, err = us.ParseFile("f", []byte(file.String()))
	require.EqualError(t, err, "f:100001: "+tooLarge)
}

// FuzzFile: a file without faults is equivalent after it was applied and written again.
func FuzzFile(f *testing.F) {
	f.Add([]byte("# users\nuser default on nopass ~* &* +@all\r\n\nuser app on >p %R~a* &n (+get ~b)\n"))
	f.Add([]byte("user a\nuser a\nuser b +foo (\nuser\nusers\x00 c"))
	f.Fuzz(func(t *testing.T, content []byte) {
		us := acl.NewUsers(testWords())
		parsed, err := us.ParseFile("f", content)
		if err != nil {
			require.Equal(t, []string{"default"}, us.Names())
			return
		}
		us.Replace(parsed)
		list := us.List()
		again, err := us.ParseFile("f", []byte(strings.Join(list, "\n")))
		require.NoError(t, err, list)
		require.Empty(t, us.Replace(again), list)
		require.Equal(t, list, us.List())
	})
}
