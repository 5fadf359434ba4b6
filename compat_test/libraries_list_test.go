//go:build real

package compat_test

// libraries is what docs/compatibility.md lists, in its order. Each language has its
// list in a file of its own.
func libraries() []library {
	var all []library
	for _, of := range [][]library{goLibraries(), javaLibraries(), nodeLibraries(), pythonLibraries(), otherLibraries()} {
		all = append(all, of...)
	}
	return all
}

// omission is a library that one would look for and that is not run.
type omission struct{ name, why string }

func omissions() []omission {
	var all []omission
	for _, of := range [][]omission{goOmissions, javaOmissions, nodeOmissions, pythonOmissions, otherOmissions} {
		all = append(all, of...)
	}
	return all
}
