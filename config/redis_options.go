package config

import (
	"errors"
	"fmt"
	"strings"
)

// promise describes an option of Redis of which some values ask for something that this server does
// not do. An operator would rely on such a value, so it is refused.
type promise struct {
	// idle are the values that are accepted, because they have no effect. why is the reason for
	// which all others are refused.
	idle []string
	why  string
}

// promises are the options of Redis, and the words of its configuration files, whose values must
// not be ignored.
var promises = map[string]promise{
	"cluster-enabled":        {[]string{"no"}, "this server is not a node of a cluster"},
	"replica-read-only":      {[]string{"yes"}, "a replica has the state of its primary and takes no writes"},
	"tls-cluster":            {[]string{"", "no"}, "this server is not a node of a cluster"},
	"sentinel":               {nil, "this server is not a sentinel"},
	"aof-load-truncated":     {[]string{"yes"}, "the server always cuts the end of a log that a crash has torn, and reports it"},
	"notify-keyspace-events": {[]string{""}, "this server sends no keyspace notifications"},
	"shutdown-on-sigint":     {[]string{"default", "now", "force", "now force", "force now"}, onSignal},
	"shutdown-on-sigterm":    {[]string{"default", "now", "force", "now force", "force now"}, onSignal},
	"socket-mark-id":         {[]string{"0"}, "this server does not mark its packets"},
	"syslog-enabled":         {[]string{"no"}, "this server writes to logfile or the standard error, and systemd reads it there"},
}

const onSignal = "a signal always stops the server like SHUTDOWN: with a snapshot if there are save points"

// kept returns the reason for refusing value; nil if it is accepted.
func (p promise) kept(value string) error {
	for _, idle := range p.idle {
		if strings.EqualFold(idle, value) {
			return nil
		}
	}
	return errors.New(p.why)
}

// refusedRedisValue returns the reason for refusing value for the Redis option called name; nil if
// it is accepted.
func refusedRedisValue(name, value string) error {
	p, ok := promises[name]
	if !ok {
		return nil
	}
	return p.kept(value)
}

// redisByName returns the options of redisOptions by all their names.
func redisByName() map[string]redisOption {
	byName := make(map[string]redisOption)
	for _, g := range redisOptions() {
		for _, o := range g.options {
			byName[o.name] = o
			if o.alias != "" {
				byName[o.alias] = o
			}
		}
	}
	return byName
}

// changeRedis handles CONFIG SET of o, an option that has no effect here. why is "" on success, so
// that programs which tune Redis when they start can continue. It is the reason if o is immutable,
// or if value asks for something that the server does not do.
func changeRedis(o redisOption, value string) (why string) {
	if o.immutable {
		return "can't set immutable config"
	}
	if err := refusedRedisValue(o.name, value); err != nil {
		return err.Error()
	}
	return ""
}

// loadModule handles `loadmodule path [argument ...]`. It returns an error unless path names
// redis-cell, which is built in.
func loadModule(path string) error {
	base := path[strings.LastIndexAny(path, `/\`)+1:]
	if name := strings.ReplaceAll(strings.TrimPrefix(base, "lib"), "-", "_"); strings.HasPrefix(name, "redis_cell") {
		return nil
	}
	return fmt.Errorf("module %q: this server loads no modules; only redis-cell is built in", base)
}
