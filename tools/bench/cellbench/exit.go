package main

// These are the exit statuses of the program.
const (
	exitOK = 0
	// exitFailed means that the measurement was not possible, or that commands failed.
	exitFailed = 1
	// exitUsage means that the command line is invalid.
	exitUsage = 2
	// exitViolated means that a limiter granted more than its limit allows, or refused calls that
	// its limit allows.
	exitViolated = 3
)

// usageError is an error in the command line.
type usageError struct{ error }
