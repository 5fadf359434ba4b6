package acl_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/acl"
)

// TestRulesAsText has what Valkey 8.0 and Redis 7.0 show in ACL LIST after the same rules.
func TestRulesAsText(t *testing.T) {
	for said, want := range map[string]string{
		"":                         "off sanitize-payload resetchannels -@all",
		"on nopass allkeys +@all":  "on nopass sanitize-payload ~* resetchannels +@all",
		"+GET|A +GET|b +select|0":  "off sanitize-payload resetchannels -@all +get|a +get|b +select|0",
		"%R~x %w~X ~X":             "off sanitize-payload %R~x ~X resetchannels -@all",
		"%R~x %W~x":                "off sanitize-payload ~x resetchannels -@all",
		"+CONFIG|GET +config":      "off sanitize-payload resetchannels -@all +config",
		"+config -config|get":      "off sanitize-payload resetchannels -@all +config -config|get",
		"+get +@ALL -@Write +SET":  "off sanitize-payload resetchannels +@all -@write +set",
		"+get -get +set +get":      "off sanitize-payload resetchannels -@all +set +get",
		"+@read +get -@read":       "off sanitize-payload resetchannels -@all +get -@read",
		"&a &b &a":                 "off sanitize-payload resetchannels &a &b -@all",
		"&a allchannels":           "off sanitize-payload &* -@all",
		"(+get ~a) (&c)":           "off sanitize-payload resetchannels -@all (~a resetchannels -@all +get) (resetchannels &c -@all)",
		"(+get ~a) clearselectors": "off sanitize-payload resetchannels -@all",
		"+xinfo +pfcount +@stream": "off sanitize-payload resetchannels -@all +xinfo +pfcount +@stream",
		"skip-sanitize-payload ON": "on skip-sanitize-payload resetchannels -@all",
		">p":                       "off sanitize-payload #148de9c5a7a44d19e56cd9ae1a554bf67847afb0c58f6e12fa29ac7ddfca9940 resetchannels -@all",
		"#148de9c5a7a44d19e56cd9ae1a554bf67847afb0c58f6e12fa29ac7ddfca9940 nopass": "off nopass sanitize-payload resetchannels -@all",
		"nopass >p <p": "off sanitize-payload resetchannels -@all",
	} {
		r, err := rulesOf(acl.NewUsers(testWords()), strings.Fields(said)...)
		require.NoError(t, err, said)
		require.Equal(t, want, r.Text(), said)
		again, err := rulesOf(acl.NewUsers(testWords()), strings.Fields(want)...)
		require.NoError(t, err, want)
		require.Equal(t, want, again.Text(), "the text says the same")
	}
}

// TestWrongRules has the errors of Valkey 8.0.
func TestWrongRules(t *testing.T) {
	const syntax, unknown = "Syntax error", "Unknown command or category name in ACL"
	for word, why := range map[string]string{
		"+xyz": unknown, "+@xyz": unknown, "+": unknown, "-": unknown, "+@": unknown, "+@all|x": unknown, "-get|a": unknown,
		"+config|foo": unknown, "+get|a|b": unknown, "-xinfo|foo": unknown, "+xinfo|foo": unknown,
		"%~a": syntax, "%rr~a": syntax, "~a b": syntax, "&a\x00": syntax, "%R": syntax, "foo": syntax, "(foo)": syntax, "(on)": syntax,
		")": syntax, "+config|": syntax, "+get|": syntax,
		"<q":            "The password you are trying to remove from the user does not exist",
		"#12":           "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters",
		"!12":           "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters",
		"+config|get|x": "Allowing first-arg of a subcommand is not supported",
		"+xinfo|help|x": "Allowing first-arg of a subcommand is not supported",
	} {
		us := acl.NewUsers(testWords())
		_, err := rulesOf(us, "+get", word)
		var rule *acl.RuleError
		require.ErrorAs(t, err, &rule, word)
		require.Equal(t, acl.RuleError{Rule: word, Why: why}, *rule)
		require.Equal(t, "Error in ACL SETUSER modifier '"+word+"': "+why, err.Error())
		require.Nil(t, us.Find("somebody"), "nothing is changed")
	}
	for _, word := range []string{"(+get", "(~a)x"} {
		_, err := rulesOf(acl.NewUsers(testWords()), word)
		require.EqualError(t, err, "Unmatched parenthesis in acl selector starting at '"+word+"'.")
	}
	for first, second := range map[string]string{"~*": "~a", "allkeys": "%R~*", "&*": "&a", "allchannels": "&x"} {
		_, err := rulesOf(acl.NewUsers(testWords()), first, second)
		require.ErrorContains(t, err, "is not valid and does not have any effect. Try 'reset")
	}
}

func TestSelectorsSplitOverWords(t *testing.T) {
	r, err := rulesOf(acl.NewUsers(testWords()), "(+get", "~a)", "(", ")", "()", "")
	require.NoError(t, err)
	require.Equal(t, "off sanitize-payload resetchannels -@all (~a resetchannels -@all +get) (resetchannels -@all) (resetchannels -@all)", r.Text())
}

func TestPermissions(t *testing.T) {
	w := testWords()
	id := func(name string) int {
		id, ok := w.Command(name)
		require.True(t, ok, name)
		return id
	}
	r, err := rulesOf(acl.NewUsers(w), strings.Fields(`+@string -set +config -config|set +select|0 %R~in:* %W~out:* ~k[0-9] ~one &news.* &x`)...)
	require.NoError(t, err)
	require.False(t, r.Unrestricted)
	s := r.Selectors()[0]
	for name, want := range map[string]bool{
		"get": true, "set": false, "config|get": true, "config|set": false, "acl|whoami": false, "cl.throttle": false, "select": false,
	} {
		require.Equal(t, want, s.Command(id(name), nil), name)
	}
	require.True(t, s.Command(id("select"), []byte("0")))
	require.False(t, s.Command(id("select"), []byte("1")))
	for key, want := range map[string]acl.Access{"in:a": acl.Read, "out:a": acl.Write, "k5": acl.Read | acl.Write, "one": acl.Read | acl.Write, "onee": 0, "kx": 0, "in": 0} {
		for _, access := range []acl.Access{acl.Read, acl.Write, acl.Read | acl.Write} {
			require.Equal(t, want&access == access, s.Key([]byte(key), access), "%s %d", key, access)
		}
		require.Equal(t, want != 0, s.Key([]byte(key), 0), "to know of %s", key)
	}
	require.True(t, s.Channel([]byte("news.a")))
	require.False(t, s.Channel([]byte("old")))
	require.True(t, s.ChannelPattern([]byte("news.*")))
	require.False(t, s.ChannelPattern([]byte("news.a*")), "a pattern is compared word for word")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		s.Key([]byte("k5"), acl.Read)
		s.Command(7, nil)
	}))
}

// TestSomeCallIsPermitted: a command, and a key with the access, have to be permitted by one selector.
func TestSomeCallIsPermitted(t *testing.T) {
	w := testWords()
	get, ok := w.Command("get")
	require.True(t, ok)
	for said, want := range map[string]bool{
		"": false, "~*": false, "+get": false, "+get ~a": true, "+@all ~a": true, "+get %R~a": false, "+get|x ~a": true, "+set ~a": false,
		"+get (~a)": false, "(+get ~a)": true, "+get %R~a %W~a": true, "+get ~a resetkeys": false, "+@all ~*": true,
	} {
		r, err := rulesOf(acl.NewUsers(w), strings.Fields(said)...)
		require.NoError(t, err, said)
		require.Equal(t, want, r.AllowSome(get, acl.Read|acl.Write), said)
	}
}

func TestUnrestricted(t *testing.T) {
	for said, want := range map[string]bool{
		"+@all ~* &*": true, "+@all ~* &* -get": false, "+@all ~* &* -get +get": true, "+@all ~* &* -get +@all": true, "+@all ~*": false, "(+@all ~* &*)": true, "+@all ~* &* -@read +@read": true,
	} {
		r, err := rulesOf(acl.NewUsers(testWords()), strings.Fields(strings.NewReplacer("(", "( ", ")", " )").Replace(said))...)
		require.NoError(t, err)
		require.Equal(t, want, r.Unrestricted, said)
	}
}

// FuzzRules: for any input, the text of the resulting rules is equivalent to them.
func FuzzRules(f *testing.F) {
	f.Add("on nopass +@all -get +config|get ~a %R~b &c (+set ~* &x) >p")
	f.Add("+get|x +xinfo|stream (~a (b) #12 %RW~ & ~")
	f.Fuzz(func(t *testing.T, said string) {
		us := acl.NewUsers(testWords())
		r, err := rulesOf(us, strings.Split(said, " ")...)
		if err != nil {
			require.Nil(t, us.Find("somebody"))
			return
		}
		again, err := rulesOf(us, strings.Split(r.Text(), " ")...)
		require.NoError(t, err, r.Text())
		require.Equal(t, r, again)
	})
}
