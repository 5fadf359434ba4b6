package config

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

func persistenceOptions() []option {
	return []option{
		{name: "save", def: "", kind: savePoints{}, doc: "Write a snapshot after this many seconds if there were at least this many changes: pairs of numbers. Empty writes none."},
		{name: "appendonly", def: "no", kind: boolean{}, doc: "Keep a log, so that a restart loses nothing."},
		{name: "appendfsync", def: "everysec", kind: choice{"always", "everysec", "no"}, mutable: true, doc: "When the log is forced to disk: before every reply, every second, or when the kernel flushes, but at least once a minute."},
		{name: "appenddirname", def: "appendonlydir", kind: dirName{}, doc: "Directory inside dir for snapshots and the log."},
		{name: "auto-aof-rewrite-percentage", def: "100", kind: integer{0, 1 << 31, ""}, mutable: true, doc: "Replace the log by a snapshot when it is this many percent larger than the last snapshot. 0 never does."},
		{name: "auto-aof-rewrite-min-size", def: "64mb", kind: size{0, 1 << 50}, mutable: true, doc: "Size below which a log is not replaced."},
		{name: "clock-max-forward-jump", def: "0", kind: integer{0, 1 << 31, "s"}, doc: "Longest time by which the server's clock may advance over a reboot of the machine, whatever the wall clock shows. 0 means no bound."},
	}
}

// savePoints is the kind of save: pairs of a number of seconds and a number of changes.
type savePoints struct{}

func (savePoints) parse(v string) (string, error) {
	fields := strings.Fields(v)
	if len(fields)%2 != 0 {
		return "", errors.New("argument must be pairs of seconds and changes")
	}
	for i, f := range fields {
		if n, err := strconv.ParseInt(f, 10, 32); err != nil || n < int64(1-i%2) {
			return "", errors.New("argument must be pairs of seconds, at least 1, and changes")
		}
	}
	return strings.Join(fields, " "), nil
}

func (savePoints) hint() string { return "seconds changes ..." }

// due reports whether one of the save points in v has been reached: at least its time has passed
// since the last snapshot, and there were at least its number of changes.
func (savePoints) due(v string, since time.Duration, changes int64) bool {
	fields := strings.Fields(v)
	for i := 0; i+1 < len(fields); i += 2 {
		if since >= seconds(fields[i]) && changes >= number(fields[i+1]) {
			return true
		}
	}
	return false
}

// dirName is the kind of an option that is the name of a directory, not a path.
type dirName struct{}

func (dirName) parse(v string) (string, error) {
	if v == "" || v == "." || v == ".." || strings.ContainsAny(v, "/\\\x00\r\n") {
		return "", errors.New("argument must be the name of a directory, not a path")
	}
	return v, nil
}

func (dirName) hint() string { return "name" }
