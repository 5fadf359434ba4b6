package limitfile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/limitador/limitfile"
	"github.com/cellserver/cellserver/policy/strict"
)

// TestRead: all fields of a limit, with those that Limitador ignores, and what it requires.
func TestRead(t *testing.T) {
	root, r := strict.Read("l.yaml", []byte(`
- {namespace: 5, name: a, id: "", max_value: 3, seconds: 60, conditions: [x, true, x], variables: ~, other: [1]}
- {namespace: ~, name: ~, seconds: 0,
   conditions: [],
   variables: [
     y]}
- {max_value: -1}
- a`), 1000)
	require.Empty(t, r.Faults())
	var unknown []strict.Key
	limits := limitfile.Read("l.yaml", root, func(key strict.Key) { unknown = append(unknown, key) })
	a, empty := "a", ""
	require.Equal(t, []*limitfile.Limit{
		{File: "l.yaml", Line: 2, Namespace: "5", Name: &a, ID: &empty, Max: 3, HasMax: true, Seconds: 60, Conditions: []limitfile.Expression{{Text: "x", Line: 2}, {Text: "true", Line: 2}}},
		{File: "l.yaml", Line: 3, Variables: []limitfile.Expression{{Text: "y", Line: 6}}},
	}, limits[:2])
	require.Len(t, limits, 4)
	require.Equal(t, []strict.Key{{Text: "other", Line: 2}}, unknown)
	require.EqualError(t, r.Faults(), `l.yaml:7: max_value must be from 0 to 9223372036854775807, not "-1"
l.yaml:7: namespace is missing
l.yaml:7: seconds is missing
l.yaml:7: conditions is missing
l.yaml:7: variables is missing
l.yaml:8: a limit must be a mapping, not the text "a"`)
}
