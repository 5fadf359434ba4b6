package command

// Defaults has the fields that most entries of a list share; see [Entries].
type Defaults struct {
	// Keys is for lists in which every command has keys: an entry cannot say that it has none.
	Keys       KeySpec
	Categories Category
	Group      string
	Since      string
	Complexity string
	WordWork   int
}

// Entries sets the fields that the entries of commands leave out to those of d, and returns commands. A
// container does nothing itself, so it gets only the group and the version. Its subcommands get nothing:
// their list has its own defaults.
func Entries(d Defaults, commands []*Command) []*Command {
	for _, c := range commands {
		if container := c.Run == nil && c.Parse == nil; !container {
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

// setDefault sets field to d if it has its zero value.
func setDefault[T comparable](field *T, d T) {
	var zero T
	if *field == zero {
		*field = d
	}
}
