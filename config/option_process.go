package config

// processOptions are the process: its directory, log and end.
func processOptions() []option {
	return []option{
		{name: "dir", def: ".", kind: text{}, doc: "Working directory, which must exist. Other paths are relative to it."},
		{name: "loglevel", def: "notice", kind: choice{"debug", "verbose", "notice", "warning", "nothing"}, mutable: true, doc: "Lowest severity that is logged."},
		{name: "logfile", def: "", kind: text{}, doc: "File to append logs to. Empty is the standard error."},
		{name: "daemonize", def: "no", kind: boolean{}, doc: "Run in the background. The command returns when the server listens. Under systemd use supervised instead."},
		{name: "pidfile", def: "", kind: text{}, doc: "File that contains the process id while the server runs."},
		{name: "supervised", def: "no", kind: supervision{}, doc: "Whom to notify when the server is ready: systemd uses sd_notify (Type=notify); auto does so if systemd asks for it."},
		{name: "shutdown-timeout", def: "10", kind: integer{1, 3600, "s"}, mutable: true, doc: "Time for clients to get their replies before the server stops."},
	}
}
