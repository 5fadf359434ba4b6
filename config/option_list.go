package config

// Described is what there is to read about an option, for pages and completions.
type Described struct {
	Name string
	// Hint stands for a value: yes|no, bytes.
	Hint string
	// Default is the value without the option, or "".
	Default string
	// Text says what the option does.
	Text string
}

// Describe returns all options of this server, in the order of the sample file.
func Describe() []Described {
	var list []Described
	for _, o := range options() {
		list = append(list, Described{Name: o.name, Hint: o.kind.hint(), Default: o.def, Text: o.doc})
	}
	return list
}
