// Package effect encodes and decodes the effects of commands on keys, for the log and for replicas.
// An [Effect] is one change: the state that it left, never the command. A [Record] has all effects
// of one command, or of one transaction or script. [Check] validates effects from files before they
// are applied.
package effect
