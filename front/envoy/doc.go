// Package envoy serves Envoy's rate limit service, envoy.service.ratelimit.v3.RateLimitService, and the health service of
// gRPC, on ports of their own.
//
// A connection is a client of this server as one of RESP is, and each call of it is a command RL.RLS with the bytes of the
// request, whose reply has the bytes of the response. So this package neither decides nor counts, and knows no rules.
package envoy
