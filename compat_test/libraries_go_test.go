package compat_test

func goLibraries() []library { return nil }

var goOmissions []omission
