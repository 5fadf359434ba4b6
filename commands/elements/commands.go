package elements

func OneIf(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}
