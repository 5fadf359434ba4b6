// Package xds gets the rules of a server from a control plane, as envoyproxy/ratelimit does with CONFIG_TYPE=GRPC_XDS_SOTW.
//
// [Client] has a stream of the aggregated discovery service. It has [Directory] write the resources of each response
// as files of rules, and a [Server] load them. It acknowledges a response when its rules are in force. If the server
// refuses them, the files are again those before, and the control plane gets the faults. The program in the folder
// ratelimit starts a server and is its client; this package starts none.
package xds
