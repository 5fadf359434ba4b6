package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/policy"
)

func TestClasses(t *testing.T) {
	all := []policy.Class{{Name: "web", Keep: 0}, {Name: "batch", Keep: 30}, {Name: "a.b_c-d", Keep: 100}}
	text, err := policy.ClassText(all)
	require.NoError(t, err)
	require.Equal(t, "a.b_c-d 100% batch 30% web 0%", text)
	require.Equal(t, "web", all[0].Name, "the classes given stay as they are")
	again, err := policy.ParseClasses(text)
	require.NoError(t, err)
	require.Equal(t, []policy.Class{{Name: "a.b_c-d", Keep: 100}, {Name: "batch", Keep: 30}, {Name: "web", Keep: 0}}, again)
	f := policy.Flags{Classes: text}
	require.Equal(t, again, f.ClassList())
	for name, want := range map[string]int64{"a.b_c-d": 100, "batch": 30, "web": 0} {
		percent, found := f.Share([]byte(name))
		require.True(t, found, name)
		require.Equal(t, want, percent, name)
	}
	for _, name := range []string{"", "bat", "batch ", "batch 30%", "30%", "BATCH", "web 0%", " "} {
		_, found := f.Share([]byte(name))
		require.False(t, found, "%q", name)
	}
	_, found := (&policy.Flags{}).Share([]byte("batch"))
	require.False(t, found)
	require.Empty(t, (&policy.Flags{}).ClassList())
}

func TestBadClasses(t *testing.T) {
	for _, text := range []string{
		" ", "a", "a 1", "a 1% b", "a 1%  b 2%", "a 1% ", " a 1%", "b 1% a 2%", "a 1% a 2%", "a 101%", "a -1%", "a 01%", "a +1%", "a %",
		"a:b 1%", "a\n1%", strings.Repeat("n", 65) + " 1%", "a 1.5%", "a 18446744073709551616%",
	} {
		_, err := policy.ParseClasses(text)
		require.ErrorIs(t, err, policy.ErrClass, "%q", text)
	}
	var classes []policy.Class
	for i := range policy.MaxClasses {
		classes = append(classes, policy.Class{Name: fmt.Sprint(i)})
	}
	_, err := policy.ClassText(classes)
	require.NoError(t, err)
	_, err = policy.ClassText(append(classes, policy.Class{Name: "x"}))
	require.ErrorIs(t, err, policy.ErrClass)
	_, err = policy.ClassText([]policy.Class{{Name: "a", Keep: -1}})
	require.ErrorIs(t, err, policy.ErrClass)
}
