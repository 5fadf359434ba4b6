// Package figure is the one registry of what the server knows of itself in numbers. A [Figure] says
// its name, its help, its type, its labels, the fields of INFO that show it, and how it is read. INFO,
// the metrics of the admin port and RL.REPORT range over a [Registry] of them, and docs/metrics.md is
// made of it, so that a new figure is one entry, beside what it is counted by.
//
// An entry keeps no state: it reads a [View], in which a look at the server keeps what several
// entries need. The package knows neither the parts that count nor any format.
package figure
