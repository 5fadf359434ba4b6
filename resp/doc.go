// Package resp is the edge between bytes and commands: the [Guard] that splits
// what a client sends into commands exactly as Redis does, the [Writer] that
// encodes replies in RESP2 and RESP3, and every error text a client can see.
//
// It is the only importer of tidwall/redcon, whose Append functions encode the
// replies and whose parser reads frames that the guard has already proven. What
// a command means is the business of package commands; moving bytes is the
// business of package transport.
package resp
