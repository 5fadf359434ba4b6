// Package sortedsets implements the commands on sorted sets.
package sortedsets
