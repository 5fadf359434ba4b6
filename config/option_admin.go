package config

// adminOptions are the port for operators.
func adminOptions() []option {
	return []option{
		{name: "admin-port", def: "0", kind: integer{0, 65535, ""}, doc: "TCP port for operators, over HTTP: /healthz, /readyz, /metrics and a page. 0 listens on no port. See docs/metrics.md."},
		{name: "admin-bind", def: "127.0.0.1 -::1", kind: words{}, doc: "Addresses of admin-port, as in bind. Addresses that other machines can reach need admin-tls or a password."},
		{name: "admin-hosts", def: "", kind: words{}, doc: "Names by which admin-port may be asked for, beside addresses, localhost and the name of the machine. * is every name. Other names are refused, since a foreign page could make its name lead here."},
		{name: "admin-tls", def: "no", kind: boolean{}, doc: "Encrypt admin-port, with the certificates of tls-port."},
		{name: "admin-anonymous-metrics", def: "yes", kind: boolean{}, doc: "Show /metrics to everybody. Otherwise only to users who may call INFO."},
		{name: "admin-actions", def: "no", kind: boolean{}, doc: "Let users run commands from the page of admin-port, as far as they may run them."},
		{name: "admin-pprof", def: "no", kind: boolean{}, doc: "Serve /debug/pprof/ on admin-port, to users who may call DEBUG."},
	}
}
