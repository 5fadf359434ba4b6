// Package sortedsets has the commands on sorted sets.
package sortedsets
