package config

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// observeOptions returns the options about slow calls, latency and DEBUG.
func observeOptions() []option {
	return []option{
		{name: "slowlog-log-slower-than", def: "10000", kind: integer{-1, math.MaxInt64 / 1000, "µs"}, mutable: true, doc: "Least duration in microseconds of a call that enters SLOWLOG. 0 enters every call, -1 none. Below 1000 every call is timed, which costs a tenth of a pipelined command."},
		{name: "slowlog-max-len", def: "128", kind: integer{0, math.MaxInt32, ""}, mutable: true, doc: "Maximum number of entries of SLOWLOG. They take at most 16 MiB, whatever this is."},
		{name: "latency-monitor-threshold", def: "0", kind: integer{0, math.MaxInt64 / 1_000_000, "ms"}, mutable: true, doc: "Least duration in milliseconds of an event that LATENCY keeps. 0 keeps none."},
		{name: "latency-tracking", def: "yes", kind: boolean{}, mutable: true, doc: "Count how long calls took, by command, for LATENCY HISTOGRAM and INFO latencystats."},
		{name: "latency-tracking-info-percentiles", def: "50 99 99.9", kind: percentiles{}, mutable: true, doc: "Percentiles that INFO latencystats shows."},
		{name: "enable-debug-command", def: "no", kind: choice{"no", "yes", "local"}, doc: "Clients that may call DEBUG: none, all, or those on this machine. With a manual clock all may call DEBUG CLOCK."},
		{name: "clock", def: "system", kind: choice{"system", manualClock}, flagOnly: true, doc: "Clock by which the server decides. The manual one is for tests of programs: it begins at 2025-01-01 00:00 UTC and moves only by DEBUG CLOCK ADD. It excludes a log, snapshots, replicas and a store."},
	}
}

// manualClock is the value of the option clock for a [clock.Manual].
const manualClock = "manual"

// percentiles is the kind of a list of numbers from 0 to 100.
type percentiles struct{}

// maxPercentiles is the maximum number of percentiles in a list.
const maxPercentiles = 32

func (k percentiles) parse(v string) (string, error) {
	fields := strings.Fields(v)
	if len(fields) > maxPercentiles {
		return "", errors.New("argument must be at most 32 percentiles")
	}
	for i, f := range fields {
		p, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return "", errors.New("argument couldn't be parsed into a float")
		}
		if !(p >= 0 && p <= 100) {
			return "", errors.New("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]")
		}
		fields[i] = strconv.FormatFloat(p, 'f', -1, 64)
	}
	return strings.Join(fields, " "), nil
}

func (percentiles) hint() string { return "percentiles" }

// of returns the numbers in v, which parse has accepted.
func (percentiles) of(v string) (list []float64) {
	for _, f := range strings.Fields(v) {
		p, _ := strconv.ParseFloat(f, 64)
		list = append(list, p)
	}
	return list
}
