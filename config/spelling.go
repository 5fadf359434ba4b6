package config

import "slices"

// DidYouMean returns `, did you mean "x"?` with the name in known that is nearest to name, a
// mistyped one; "" if none is near.
func DidYouMean(name string, known []string) string {
	best, least := "", min(3, len(name)/4+1) // a short name allows fewer changes, since foo is not near top
	for _, k := range known {
		if d := editDistance(name, k, least); d < least || d == least && best == "" {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return `, did you mean "` + best + `"?`
}

// editDistance returns the number of letters that must be inserted, removed, replaced or swapped
// with their neighbour to turn a into b; most+1 if that number exceeds most.
func editDistance(a, b string, most int) int {
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], most+1)
}

// names returns all names that a line of a configuration file may begin with, sorted.
func (c *Config) names() []string {
	names := []string{"include", "loadmodule", "rename-command", "user"}
	for name := range c.byName {
		names = append(names, name)
	}
	for name := range c.redis {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
