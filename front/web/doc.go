// Package web answers HTTP requests for decisions of policies, for programs and for gateways.
//
//	POST /v1/use                          a call as JSON, with all that RL.USE can take of one policy
//	any  /v1/check/{policy}/{params}[/..]  a check by a gateway: 200, or 429 with header fields
//
// The parameters of a check are in its path, which the operator of the gateway writes. Of the input that the client of
// the gateway can write, a check reads only the parts that the parameters name. It reads neither the query nor the body
// nor credentials, and no header fields about the original request from a peer that is not a trusted proxy. See
// [Params] and [Gateway].
//
// A request becomes a call of RL.USE on a session within the process, a [Caller]. So the package
// does not decide calls, and depends neither on policies nor on users.
package web
