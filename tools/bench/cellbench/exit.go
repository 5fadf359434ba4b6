package main

// The exit statuses.
const (
	exitOK = 0
	// exitFailed: it could not be measured, or commands failed.
	exitFailed = 1
	// exitUsage: the command line makes no sense.
	exitUsage = 2
	// exitViolated: a limiter let more through than its limit can have, or less.
	exitViolated = 3
)

// usageError is a fault of the command line.
type usageError struct{ error }
