// Package metrics shows the figures of a server to Prometheus: those of a [figure.Registry] that have a
// name. [Handler] serves them.
//
// No key makes the metrics grow. Labels whose values come from outside are bounded: see
// [MaxSeries].
package metrics
