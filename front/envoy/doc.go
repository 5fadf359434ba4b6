// Package envoy serves Envoy's rate limit service and the health service of gRPC.
//
// A connection is a client of this server as one of RESP is, from its start on, and its memory is bounded and counts as that of the
// client. Package descriptors answers the calls, so this package neither decides nor counts, and knows no rules.
package envoy
