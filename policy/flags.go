package policy

// Flags are the properties of a policy as a whole. They hold under its overrides and for its candidate, too.
type Flags struct {
	// Shadow says that calls are decided and charged as usual, but always allowed.
	Shadow bool
	// Count says that the limits also charge the calls that they deny, but take no place of a concurrency
	// limit for them.
	Count bool
	// Key says what the keys of the policy are.
	Key KeyForm
}

// Switch is a flag that is on or off.
type Switch struct {
	// Word is the word of RL.POLICY SET that turns the flag on. Field is the name of the flag in YAML, in
	// records and in replies.
	Word, Field string
	// Of returns the place of the flag in f.
	Of func(f *Flags) *bool
}

// Switches has the flags that are on or off, in the order in which they are written.
var Switches = []Switch{
	{"SHADOW", "shadow", func(f *Flags) *bool { return &f.Shadow }},
	{"COUNT", "count", func(f *Flags) *bool { return &f.Count }},
}
