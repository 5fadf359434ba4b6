package acl_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/acl"
)

// TestFaultLine: the line has as many faults as fit, and the number of the others, including those
// of a second file.
func TestFaultLine(t *testing.T) {
	_, many := acl.NewUsers(testWords()).ParseFile("f", []byte(strings.Repeat("x\n", 150)))
	first := "f:1 should start with user keyword followed by the username"
	for _, tt := range []struct {
		err  error
		most int
		want string
	}{
		{errors.New("one"), 100, "one"},
		{errors.New("one"), 2, "on"},
		{errors.Join(errors.New("one"), errors.New("two\x1b")), 100, "one; two "},
		{errors.Join(errors.New("one"), errors.New("two")), 5, "one; 1 more fault"},
		{errors.Join(errors.New("one"), errors.New("two"), errors.New("three")), 5, "one; 2 more faults"},
		{many, 70, first + "; 149 more faults"},
		{errors.Join(many, errors.New("another file")), 70, first + "; 150 more faults"},
	} {
		require.Equal(t, tt.want, acl.FaultLine(tt.err, "; ", tt.most))
	}
	all := acl.FaultLine(errors.Join(errors.New("before"), many, errors.New("behind")), "; ", 1<<20)
	require.True(t, strings.HasPrefix(all, "before; "+first), all)
	require.True(t, strings.HasSuffix(all, "f:100 should start with user keyword followed by the username; behind; 50 more faults"), all)
	require.Equal(t, 101, strings.Count(all, "; f:")+strings.Count(all, "; behind"), fmt.Sprint(len(all)))
}
