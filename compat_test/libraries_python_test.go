package compat_test

func pythonLibraries() []library { return nil }

var pythonOmissions []omission
