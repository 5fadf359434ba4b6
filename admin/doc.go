// Package admin is the port for those who run a server: an HTTP server of its own with
// /healthz, /readyz, /metrics, /debug/pprof/, an API and a page. [New] makes one of a
// [Config], whose handlers answer; this package decides who may reach them, and bounds what
// a client can take.
//
// Nothing of a request is trusted before it is checked: the host that it names, the page that
// it comes from, its size, its user. It knows no command, no client and no key.
package admin
