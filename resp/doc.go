// Package resp implements the Redis protocol: bytes to commands, and values to replies. A [Guard]
// splits the bytes of a client into commands exactly as Redis does, and a [Writer] encodes replies
// in RESP2 and RESP3. The package also has the text of every error that a client can get.
//
// No other package imports tidwall/redcon. The Append functions of redcon encode the replies, and
// its parser reads frames that the Guard has validated. Package commands implements the commands,
// and package transport moves the bytes.
package resp
