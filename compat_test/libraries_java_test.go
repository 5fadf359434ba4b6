package compat_test

func javaLibraries() []library { return nil }

var javaOmissions []omission
