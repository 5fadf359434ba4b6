package elements

// OneIf is 1 for yes, and 0 for no.
func OneIf(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}
