// Package metrics exports the figures of a server to Prometheus: those of a [figure.Registry]
// that have a name. [Handler] serves them.
//
// The number of series does not depend on the number of keys. Labels whose values come from
// outside are bounded: see [MaxSeries].
package metrics
