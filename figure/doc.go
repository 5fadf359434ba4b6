// Package figure is the registry of all numbers that the server reports about itself. A [Figure]
// defines the name of a number, its help text, type and labels, the fields of INFO that show it,
// and how it is read. INFO, the metrics of the admin port and RL.REPORT iterate over a [Registry]
// of figures, and docs/metrics.md is generated from it. So a new figure is a single entry next to
// its counter.
//
// A Figure keeps no state. It reads a [View], which is one reading of the server and keeps what
// several figures need. The package depends neither on the parts that count nor on any output
// format.
package figure
