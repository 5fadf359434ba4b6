// Package effect is what changes of keys leave behind, as it is written down and read again.
// An [Effect] is one change: the state that it left, never the command. A [Record] has all
// effects of one command, or of one transaction or script. [Check] looks at what comes from
// files before anybody believes it.
package effect
