// Package limit asks a cellserver whether a call may go ahead, within a deadline whatever happens to the server.
//
// A [Limiter] is made once, with [New], and used by all goroutines. [Limiter.Take] is one round trip. It decides in
// the process instead if it knows the denial, or if the server does not answer: then [Options.OnUnavailable] decides.
// An error of Take is a fault of the program, such as a key of another type, and no reason to let a call pass.
//
// Package httplimit has the middleware for net/http, and limittest a server for tests with a clock of its own.
package limit
