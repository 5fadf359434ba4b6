package envoyenv

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// fault records that the value of a variable is not accepted, with the reason, once for each variable.
func (g *given) fault(name, why string, args ...any) {
	if !g.faulty[name] {
		g.faulty[name] = true
		g.faults = append(g.faults, fmt.Errorf("environment variable %s: "+why, append([]any{name}, args...)...))
	}
}

// text returns the value of a variable.
func (g *given) text(name string) string {
	if v, set := g.set[name]; set {
		return v
	}
	return g.defaults[name]
}

// boolean reports whether a variable is true. As ratelimit, it takes 1, t, true, 0, f and false.
func (g *given) boolean(name string) bool {
	v, err := strconv.ParseBool(g.text(name))
	if err != nil {
		g.fault(name, "%q is neither true nor false", g.text(name))
	}
	return v
}

// whole returns the value of a variable that is an integer, in decimal. As ratelimit, it also takes 0x10, 0o20 and 0b1.
func (g *given) whole(name string) string {
	n, err := strconv.ParseInt(g.text(name), 0, 32)
	if err != nil {
		g.fault(name, "%q is not an integer", g.text(name))
	}
	return strconv.FormatInt(n, 10)
}

// seconds returns the value of a variable that is a duration such as 24h, as a number of seconds,
// rounded up.
func (g *given) seconds(name string) string {
	d, err := time.ParseDuration(g.text(name))
	if err != nil {
		g.fault(name, "%q is not a duration such as 24h", g.text(name))
	}
	n := int64(d / time.Second)
	if d%time.Second > 0 {
		n++
	}
	return strconv.FormatInt(n, 10)
}

// percent returns the value of a variable that is a number from 0 to 1 as a percentage from 1 to 99.
func (g *given) percent(name string) string {
	f, err := strconv.ParseFloat(g.text(name), 32)
	if err != nil || !(f >= 0 && f <= 1) {
		g.fault(name, "%q is not a number from 0 to 1", g.text(name))
		return ""
	}
	return strconv.Itoa(min(max(int(math.Round(f*100)), 1), 99))
}

// addresses returns the value of a variable that is a host to listen on, as addresses of the option bind.
func (g *given) addresses(name string) string {
	switch host := g.text(name); host {
	case "", "::": // both stand for all addresses of both families
		return "* -::*"
	default:
		return host
	}
}

// levels maps each log level of envoyproxy/ratelimit to the value of the option loglevel that
// replaces it.
var levels = map[string]string{
	"trace": "debug", "debug": "debug", "info": "notice", "warn": "warning", "warning": "warning",
	"error": "warning", "fatal": "nothing", "panic": "nothing",
}

// level returns the value of a variable that is a log level.
func (g *given) level(name string) string {
	v, known := levels[strings.ToLower(g.text(name))]
	if !known {
		g.fault(name, "%q is not a level: panic, fatal, error, warn, info, debug or trace", g.text(name))
	}
	return v
}

// word returns the value of a variable that must be one of words.
func (g *given) word(name string, words ...string) string {
	v := g.text(name)
	for _, w := range words {
		if v == w {
			return v
		}
	}
	g.fault(name, "%q is none of %s", v, strings.Join(words, ", "))
	return ""
}

// absent requires that a variable is empty.
func (g *given) absent(name, why string) {
	if g.text(name) != "" {
		g.fault(name, "%s", why)
	}
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
