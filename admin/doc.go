// Package admin is the HTTP server for operators: /healthz, /readyz, /metrics, /debug/pprof/, an
// API and a page. [New] creates a server from a [Config], which has the handlers. The package
// decides which requests reach the handlers, and bounds the resources that a client can use.
//
// The package checks the host, the origin, the size and the user of a request before a handler gets
// the request. It does not depend on commands, clients or keys.
package admin
