// Package stats has the statistics of the server that sessions, limiters and the transports write.
// It counts commands by command and worker, error replies by their first word, and decisions by
// group of keys. It also has the histograms of durations, the slow log, the latency events, the
// list of changes, and the lines for MONITOR. INFO, the metrics and the reports read these
// statistics.
package stats
