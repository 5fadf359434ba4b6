package config

import (
	"maps"
	"slices"
)

// OptionNames returns the options of this server, with older names.
func OptionNames() (names []string) {
	for _, o := range options() {
		names = append(names, o.name)
		if o.alias != "" {
			names = append(names, o.alias)
		}
	}
	return names
}

// RedisOptionNames is described at OptionNames.
func RedisOptionNames() (names []string) {
	for _, g := range redisOptions() {
		for _, o := range g.options {
			names = append(names, o.name)
			if o.alias != "" {
				names = append(names, o.alias)
			}
		}
	}
	return names
}

// Promises returns the options and words with values that are refused, because the operator would
// rely on them.
func Promises() (names []string) { return slices.Sorted(maps.Keys(promises)) }
