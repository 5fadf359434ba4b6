// Package top shows the state of a server in a terminal. It shows the verdict, four numbers,
// groups, keys and changes, as the page of the admin port does. It reads the same reports, by
// RL.REPORT over the Redis protocol, so it needs no other port.
//
// [Ask] reads a [Snapshot] from a [Source]. [Text] writes one as plain lines, for pipes. [Model]
// is the program in a terminal. A name of a client is printed without control characters.
package top
