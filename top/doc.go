// Package top shows the state of a server in a terminal.
// It shows the verdict, four numbers, groups, keys and changes, like the page of the admin port. It
// reads the same reports by RL.REPORT over the Redis protocol, so it needs no other port.
//
// [Ask] reads a [Snapshot] from a [Source]. [Text] formats one as plain lines, for pipes. [Model]
// is the interactive program. Names of clients are printed without control characters.
package top
