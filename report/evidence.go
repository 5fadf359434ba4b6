package report

// Facts are the input of [Diagnose]. Times are civil, in Unix milliseconds.
type Facts struct {
	At     int64
	Now    Now
	Checks []Check
	// Failing maps each check that fails to the time at which it began to fail.
	Failing map[string]int64

	Fault      string // the reason why the state cannot be persisted; "" if it can be
	FaultSince int64

	FullSince int64 // the time since which calls have lacked memory
	Lacking   Key   // the group to which most of the calls that lacked memory belong

	Dependencies
	Code string // the first word of the most frequent errors; "" if there were none

	// Named is the previous verdict. Its figures have to become clearly better before it is
	// withdrawn, so that the verdict does not change with each sample.
	Named Verdict

	Script *RunningScript
	Logins []FailedLogin
	// ManualClock says that the clock moves only by DEBUG CLOCK ADD.
	ManualClock bool

	Groups  []GroupFacts
	Keys    []DeniedKey // the keys with the most denials, in descending order
	Changes []Change    // the changes, the newest first

	Idle bool // whether no limiter has been called for a minute
}

// GroupFacts are the facts about a group of keys that [Diagnose] needs.
type GroupFacts struct {
	Group
	// Before is the ratio of denied calls before the last change of the limit, -1 if it is not
	// known.
	Before float64
	// Was is the limit before the last change, which happened at Changed. The rates are the limits
	// in calls per second; 0 if they are not known.
	Was           string
	Changed       int64
	Rate, WasRate float64
}
