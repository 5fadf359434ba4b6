// Package acl implements the permissions of users: the commands, keys and channels that each user
// may use. Rules are the words of ACL SETUSER and of Redis' ACL files, with the meaning and the
// errors of Redis 7.2. The package identifies commands by the numbers of a [Vocabulary], and does
// not depend on connections.
package acl
