// Package wire encodes and decodes the messages of Envoy's rate limit service in the form of protocol buffers.
//
// These are RateLimitRequest and RateLimitResponse of envoy.service.ratelimit.v3. It copies no text of a request, and uses no generated
// types, whose decoding costs more than a decision.
package wire
