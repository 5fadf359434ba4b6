// Package metrics exports the figures of a server to Prometheus: those of a [figure.Registry] that
// have a name. [Handler] serves them.
//
// The number of series does not depend on the number of keys. Labels with values from clients are
// bounded: see [MaxSeries].
package metrics
