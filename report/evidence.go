package report

// Facts are what a verdict is made of. Times are civil, in Unix milliseconds.
type Facts struct {
	At     int64
	Now    Now
	Checks []Check
	// Failing says since when a check fails.
	Failing map[string]int64

	Fault      string // why the state cannot be kept
	FaultSince int64

	FullSince int64 // since when calls lack memory
	Lacking   Key   // the group that does most

	Elsewhere
	Code string // the first word of most errors

	// Named is the verdict of a moment ago. What it named has to become clearly better before it is
	// not named any more, so that a verdict does not change with each sample.
	Named Verdict

	Script *RunningScript
	Logins []FailedLogin

	Groups  []GroupFacts
	Keys    []DeniedKey // those denied most
	Changes []Change    // the newest first

	Idle bool // no limiter has been called for a minute
}

// GroupFacts is what a verdict looks at of a group.
type GroupFacts struct {
	Group
	// Before is the ratio of denied calls before the last change of the limit, -1 if it is not
	// known.
	Before float64
	// Was is the limit before the last change, which was at Changed; the rates are calls a
	// second, 0 if they are not known.
	Was           string
	Changed       int64
	Rate, WasRate float64
}
