package config

// persistenceOptions are what is kept over a restart.
func persistenceOptions() []option {
	return []option{
		{name: "save", def: "", kind: savePoints{}, doc: "Write a snapshot after this many seconds with this many changes: pairs of numbers. Empty never does."},
		{name: "appendonly", def: "no", kind: boolean{}, doc: "Keep a log, so that a restart loses nothing."},
		{name: "appendfsync", def: "everysec", kind: choice{"always", "everysec", "no"}, mutable: true, doc: "When the log is forced to disk: before every reply, every second, or when the system likes, but at least once a minute."},
		{name: "appenddirname", def: "appendonlydir", kind: dirName{}, doc: "Directory inside dir for snapshots and the log."},
		{name: "auto-aof-rewrite-percentage", def: "100", kind: integer{0, 1 << 31, ""}, mutable: true, doc: "Replace the log by a snapshot when it is this many percent larger than the last snapshot. 0 never does."},
		{name: "auto-aof-rewrite-min-size", def: "64mb", kind: size{0, 1 << 50}, mutable: true, doc: "Size below which a log is not replaced."},
		{name: "clock-max-forward-jump", def: "0", kind: integer{0, 1 << 31, "s"}, doc: "Maximum by which time may advance over a reboot of the machine, whatever the wall clock says. 0 means no bound."},
	}
}
