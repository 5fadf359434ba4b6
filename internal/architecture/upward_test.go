package architecture_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cellserver/cellserver/internal/architecture"
)

// TestReferences: what makes a file refer to another.
func TestReferences(t *testing.T) {
	const declares = "package p\ntype T struct{ field int }\nfunc (T) method() {}\nfunc f() {}\nconst c = 1\nvar v = 2\n"
	tests := map[string]struct {
		file, source string
		want         int
	}{
		"nothing":                {"b.go", `package p; func g() {}`, 0},
		"a function":             {"b.go", `package p; func g() { f() }`, 1},
		"a type":                 {"b.go", `package p; var x *T`, 1},
		"a constant":             {"b.go", `package p; const d = c + 1`, 1},
		"a method of a result":   {"b.go", `package p; func g(ts []T) { ts[0].method() }`, 1},
		"a field in a literal":   {"b.go", `package p; var x = T{field: 1}`, 1},
		"an embedded type":       {"b.go", `package p; type U struct{ T }; func g(u U) int { return u.field }`, 1},
		"much of one file":       {"b.go", `package p; func g() { f(); v = c; f() }`, 1},
		"a method's receiver":    {"b.go", `package p; func (T) another() {}`, 1},
		"a local of that name":   {"b.go", `package p; func g(f func(), c int) { f(); v := c; _ = v }`, 0},
		"another package's name": {"b.go", `package p; import "q"; func g() { q.f(); q.T{}.method() }`, 0},
		"what cannot be known":   {"b.go", `package p; import "q"; func g() { unknown(); q.X.field = f }`, 1},
		"a test's file":          {"b_test.go", `package p; func g() { f() }`, 0},
		"another platform's":     {"b_windows.go", `package p; func g() { f() }`, 0},
		"Linux's":                {"b_linux.go", `package p; func g() { f() }`, 1},
		"another build's":        {"b.go", "//go:build race\n\npackage p; func g() { f() }", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			m := measure(t, fstest.MapFS{"p/a.go": {Data: []byte(declares)}, "p/" + tt.file: {Data: []byte(tt.source)}})
			require.Equal(t, tt.want, m.References)
			require.Zero(t, m.InCycles)
			require.Empty(t, m.Upward)
		})
	}
}

// TestUpward: which references are in cycles, and which are said to point up.
func TestUpward(t *testing.T) {
	tests := map[string]struct {
		uses     []string
		inCycles int
		want     []string
	}{
		"a chain": {[]string{"a.go b.go", "b.go c.go", "a.go c.go"}, 0, nil},
		"two that use each other": {
			[]string{"a.go b.go", "b.go a.go", "c.go a.go"},
			2,
			[]string{"b.go uses A of a.go"},
		},
		"a ring": {
			[]string{"a.go b.go", "b.go c.go", "c.go a.go"},
			3,
			[]string{"c.go uses A of a.go"},
		},
		"one below that looks up": {
			[]string{"a.go d.go", "b.go d.go", "c.go d.go", "d.go b.go"},
			2,
			[]string{"d.go uses B of b.go"},
		},
		"a center": {
			[]string{"a.go m.go", "b.go m.go", "c.go m.go", "m.go a.go", "m.go b.go"},
			4,
			[]string{"m.go uses A of a.go", "m.go uses B of b.go"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			m := measure(t, uses(tt.uses...))
			var got []string
			for _, r := range m.Upward {
				got = append(got, r.String())
			}
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.inCycles, m.InCycles)
			require.Equal(t, len(tt.uses), m.References)
		})
	}
}

// TestUpwardIsNeverTooFew compares with all orders of a few files: the count is not
// below the least, and it is 0 where that is 0.
func TestUpwardIsNeverTooFew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a.go", "b.go", "c.go", "d.go", "e.go"}
		pairs := map[string]bool{}
		for range rapid.IntRange(0, 12).Draw(t, "references") {
			from, to := rapid.SampledFrom(names).Draw(t, "from"), rapid.SampledFrom(names).Draw(t, "to")
			if from != to {
				pairs[from+" "+to] = true
			}
		}
		var all []string
		for p := range pairs {
			all = append(all, p)
		}
		least := fewest(names, nil, pairs)
		m := measure(t, uses(all...))
		require.GreaterOrEqual(t, len(m.Upward), least)
		require.Equal(t, least == 0, len(m.Upward) == 0)
		require.Equal(t, least == 0, m.InCycles == 0)
		require.Equal(t, m, measure(t, uses(all...)), "counted twice")
	})
}

// fewest returns how many of the pairs point up at least when the files names stand,
// in any order, below those that are placed.
func fewest(names, placed []string, pairs map[string]bool) int {
	least := -1
	for i, n := range names {
		up := 0
		for _, above := range placed {
			if pairs[n+" "+above] {
				up++
			}
		}
		rest := slices.Delete(slices.Clone(names), i, i+1)
		up += fewest(rest, append(slices.Clone(placed), n), pairs)
		if least < 0 || up < least {
			least = up
		}
	}
	return max(least, 0)
}

// uses is a package in which files use each other: "a.go b.go" means that a.go uses
// what b.go declares.
func uses(pairs ...string) fstest.MapFS {
	tree := fstest.MapFS{}
	file := func(name string) *fstest.MapFile {
		if tree["p/"+name] == nil {
			tree["p/"+name] = &fstest.MapFile{Data: fmt.Appendf(nil, "package p\nconst %s = 1\n", declared(name))}
		}
		return tree["p/"+name]
	}
	for _, pair := range slices.Sorted(slices.Values(pairs)) {
		from, to, _ := strings.Cut(pair, " ")
		file(to)
		f := file(from)
		f.Data = fmt.Appendf(f.Data, "const from%sTo%s = %s\n", declared(from), declared(to), declared(to))
	}
	return tree
}

// declared is what a file of uses declares.
func declared(name string) string { return strings.ToUpper(strings.TrimSuffix(name, ".go")) }

// measure measures a tree of one package.
func measure(t require.TestingT, tree fstest.MapFS) architecture.Measure {
	all, err := architecture.Measures(tree)
	require.NoError(t, err)
	if len(all) == 0 { // no file at all
		return architecture.Measure{}
	}
	return all[0]
}
