// Package figure is the registry of all numbers that the server reports about itself. A [Figure]
// defines its name, help, type, labels, the fields of INFO that show it, and how it is read. INFO,
// the metrics of the admin port and RL.REPORT range over a [Registry] of figures, and
// docs/metrics.md is generated from it, so that a new figure is one entry next to its counter.
//
// An entry keeps no state: it reads a [View], in which one reading of the server keeps what several
// entries need. The package depends neither on the counting parts nor on any output format.
package figure
