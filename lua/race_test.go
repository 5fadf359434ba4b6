//go:build race

package lua_test

// grownTwice: under the race detector slices.Grow makes what it appends, too.
const grownTwice = true
