package config

// userOptions are who may do what.
func userOptions() []option {
	return []option{
		{name: "protected-mode", def: "yes", kind: boolean{}, mutable: true, doc: "Serve only this machine while there is no password and no chosen bind."},
		{name: "requirepass", def: "", kind: text{}, mutable: true, secret: true, doc: "Password of the user default. Empty lets everybody in."},
		{name: "aclfile", def: "", kind: text{}, doc: "File of users, a line 'user name rule ...' each, which ACL LOAD reads again and ACL SAVE writes. Users are there or in lines 'user' of the configuration, not in both."},
		{name: "acl-pubsub-default", def: "resetchannels", kind: choice{"resetchannels", "allchannels"}, mutable: true, doc: "Channels of a new user: none, or all."},
		{name: "acllog-max-len", def: "128", kind: integer{0, 10_000, ""}, mutable: true, doc: "Maximum number of entries of ACL LOG."},
		{name: "acl-keyspace-needs-allkeys", def: "yes", kind: boolean{}, mutable: true, doc: "Let only users with all keys run KEYS, SCAN, RANDOMKEY, FLUSHDB and FLUSHALL. Redis lets everybody who may call them."},
	}
}
