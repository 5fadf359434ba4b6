package command

// Defaults has the values of fields that most entries of a list share; see [Entries].
type Defaults struct {
	// Keys is the default of entries without keys and channels. A list may set it only if every
	// command in the list has keys, because an entry cannot override it with none.
	Keys       KeySpec
	Categories Category
	Group      string
	Since      string
	Complexity string
	WordWork   int
}

// Entries sets each field that an entry of commands leaves out to its value in d, and returns
// commands. A container gets only the group and the version, because it does nothing itself.
// Subcommands are not changed: their own list has its own defaults.
func Entries(d Defaults, commands []*Command) []*Command {
	for _, c := range commands {
		if container := c.Run == nil && c.RunOn == nil && c.Parse == nil; !container {
			if c.Keys.None() && c.Keys.Channels.First == 0 {
				c.Keys = d.Keys
			}
			setDefault(&c.Categories, d.Categories)
			setDefault(&c.Complexity, d.Complexity)
			setDefault(&c.WordWork, d.WordWork)
		}
		setDefault(&c.Group, d.Group)
		setDefault(&c.Since, d.Since)
	}
	return commands
}

func setDefault[T comparable](field *T, d T) {
	var zero T
	if *field == zero {
		*field = d
	}
}
