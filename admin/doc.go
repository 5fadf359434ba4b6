// Package admin is the HTTP server for operators: /healthz, /readyz, /metrics, /debug/pprof/, an
// API and a page. [New] creates one from a [Config], whose handlers answer; this package decides
// which requests reach them, and bounds what a client can use.
//
// Each part of a request is checked before it is trusted: its host, the page that it comes from,
// its size, its user. The package knows no command, no client and no key.
package admin
