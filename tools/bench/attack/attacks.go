package attack

import (
	"fmt"
	"slices"
)

// All returns every attack, in the order of the tables.
func All() []Attack {
	return slices.Concat(largeReplies(), manyReplies(), gets(), overwrites(), scripts(), long(), writes(), logs(), mixes(), everyCommand())
}

// Named returns the attacks with the given names, or all attacks without a name. An unknown name is
// an error.
func Named(names ...string) ([]Attack, error) {
	all := All()
	if len(names) == 0 {
		return all, nil
	}
	var chosen []Attack
	for _, name := range names {
		at := slices.IndexFunc(all, func(a Attack) bool { return a.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("there is no attack named %q", name)
		}
		chosen = append(chosen, all[at])
	}
	return chosen, nil
}
