package config

// networkOptions are where the server listens, and how connections are served.
func networkOptions() []option {
	return []option{
		{name: "bind", def: "127.0.0.1 -::1", kind: words{}, doc: "Addresses to listen on. * is all of IPv4, and ::* all of IPv6. Empty listens on none. An address that begins with '-' may be missing on this machine."},
		{name: "port", def: "6379", kind: integer{0, 65535, ""}, mutable: true, doc: "TCP port. 0 listens on no port. Who is connected stays so when it changes."},
		{name: "tcp-backlog", def: "511", kind: integer{1, 65535, ""}, doc: "Connections that the kernel holds until the server accepts them."},
		{name: "transport", def: "auto", kind: choice{"auto", "epoll", "goroutine"}, doc: "How connections are served: by an event loop per core (Linux), or by a goroutine each."},
		{name: "io-threads", def: "0", kind: integer{0, 128, ""}, doc: "Number of event loops. 0 means one per core, at most 8."},
		{name: "unixsocket", def: "", kind: text{}, doc: "Path of a Unix socket to listen on."},
		{name: "unixsocketperm", def: "700", kind: octal{}, doc: "Permissions of the Unix socket, in octal."},
	}
}
