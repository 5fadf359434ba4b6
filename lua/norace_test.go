//go:build !race

package lua_test

// grownTwice is described in race_test.go.
const grownTwice = false
