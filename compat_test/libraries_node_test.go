package compat_test

func nodeLibraries() []library { return nil }

var nodeOmissions []omission
