package config

import (
	"maps"
	"slices"
)

// OptionNames are the options that this server has itself, and RedisOptionNames those of
// Redis that mean nothing to it, older names included.
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

// Promises are the options and words that promise something in some of their values.
func Promises() (names []string) { return slices.Sorted(maps.Keys(promises)) }
