// Package effect encodes and decodes the effects of commands on keys, for the log and for replicas.
// An [Effect] describes one change by the state after the change, never by the command. A [Record]
// has all effects of one command, or of one transaction or script. [Check] validates an effect from
// a file or from another server before it is applied.
package effect
