package main

// These are the exit statuses.
const (
	exitOK = 0
	// exitFailed: measuring was not possible, or commands failed.
	exitFailed = 1
	// exitUsage: the command line is invalid.
	exitUsage = 2
	// exitViolated: a limiter granted more than its limit allows, or refused calls that it allows.
	exitViolated = 3
)

// usageError is an error in the command line.
type usageError struct{ error }
