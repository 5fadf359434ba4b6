// Package resp implements the Redis protocol: bytes to commands, and values to replies. The [Guard]
// splits the bytes of a client into commands exactly as Redis does, and the [Writer] encodes
// replies in RESP2 and RESP3. The package also has the text of every error that a client can get.
//
// It is the only importer of tidwall/redcon. redcon's Append functions encode the replies, and its
// parser reads frames that the guard has validated. Package commands implements the commands, and
// package transport moves the bytes.
package resp
