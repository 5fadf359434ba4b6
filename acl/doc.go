// Package acl says what a user may do: which commands, on which keys, on which channels.
// Its rules are the words of ACL SETUSER and of Redis' ACL files, with the meaning and the
// errors of Redis 7.2. It knows commands by the numbers that a [Vocabulary] gives them, and
// nothing of connections.
package acl
