// Package sets has the commands on sets.
package sets
