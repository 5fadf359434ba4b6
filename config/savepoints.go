package config

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// savePoints is pairs of seconds and changes, as `save` has them.
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

// due reports whether one of the points of v has been reached.
func (savePoints) due(v string, since time.Duration, changes int64) bool {
	fields := strings.Fields(v)
	for i := 0; i+1 < len(fields); i += 2 {
		if since >= seconds(fields[i]) && changes >= number(fields[i+1]) {
			return true
		}
	}
	return false
}

// dirName is the name of a directory, not a path.
type dirName struct{}

func (dirName) parse(v string) (string, error) {
	if v == "" || v == "." || v == ".." || strings.ContainsAny(v, "/\\\x00\r\n") {
		return "", errors.New("argument must be the name of a directory, not a path")
	}
	return v, nil
}

func (dirName) hint() string { return "name" }
