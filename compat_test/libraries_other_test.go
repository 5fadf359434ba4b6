package compat_test

func otherLibraries() []library { return nil }

var otherOmissions []omission
