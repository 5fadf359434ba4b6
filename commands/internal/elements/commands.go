package elements

// OneIf returns 1 for true and 0 for false.
func OneIf(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}
