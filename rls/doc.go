// Package rls has the rules of Envoy's rate limit service as envoyproxy/ratelimit applies them, without a
// protocol.
//
// [Load] makes a [Config] of the files of ratelimit. Each limit of a file is a [Rule] with a policy, whose name
// depends only on its path. A front decodes a [Request], and [Config.Plan] says which policies and keys it
// charges. A decision service decides the charges, one after another at one instant. [Plan.Answer] then makes the
// [Answer] of the decisions, which the front encodes. The package neither decides nor counts, and has no clock.
package rls
