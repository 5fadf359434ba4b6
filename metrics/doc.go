// Package metrics shows how a server is to Prometheus. [Figures] are what the server knows at
// the moment of a scrape. One table says of every metric its name, its help, its type and how
// it is made of the figures: docs/metrics.md is made of that table, too. [Handler] serves it.
//
// No key makes the metrics grow. Labels whose values come from outside are bounded: see
// [MaxSeries].
package metrics
