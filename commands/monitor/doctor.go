package monitor

import (
	"fmt"
	"strings"
	"time"

	"github.com/cellserver/cellserver/stats"
)

// advice returns a suggestion for operators about slow occurrences of the event e; "" if there is
// none.
func advice(e stats.Event) string {
	switch e {
	case stats.CommandEvent:
		return "SLOWLOG GET shows which commands took long. Split calls with many keys or elements into smaller ones."
	case stats.FastCommandEvent:
		return "These commands do little, so something else took the processor: check the load of the machine, and whether memory is swapped. SLOWLOG GET names the longest command of a batch that took long."
	case stats.ScriptEvent:
		return "SLOWLOG GET shows which scripts took long. Let scripts do less, or call the built-in limiters instead."
	case stats.ExpireEvent:
		return "Large collections have expired. Use smaller ones, or let them expire at different times."
	case stats.WriteEvent, stats.SyncEvent:
		return "The disk is slow. Use a faster one for dir, keep other programs from writing to it, or set appendfsync to everysec."
	}
	return ""
}

// diagnose returns the text of LATENCY DOCTOR about the samples of all events. threshold is the
// configured minimum duration of an event; 0 means that events are not recorded.
func diagnose(all []stats.Samples, threshold time.Duration) string {
	if threshold == 0 && len(all) == 0 {
		return "Events are not watched. CONFIG SET latency-monitor-threshold <milliseconds> starts to keep those that take that long.\n"
	}
	if len(all) == 0 {
		return fmt.Sprintf("No event took %d ms or longer.\n", threshold.Milliseconds())
	}
	var b strings.Builder
	b.WriteString("Events that took long:\n\n")
	for i := range all {
		s := &all[i]
		mean, deviation := spread(s)
		fmt.Fprintf(&b, "%d. %s: %d latency spikes (average %dms, mean deviation %dms, period %.2f sec). Worst all time event %dms.\n",
			i+1, s.Event, len(s.List), mean, deviation, period(s), s.Worst)
	}
	b.WriteString("\nWhat may help:\n\n")
	for i := range all {
		fmt.Fprintf(&b, "- %s: %s\n", all[i].Event, advice(all[i].Event))
	}
	return b.String()
}

// spread returns the mean of the samples and their mean absolute deviation from the mean, in
// milliseconds, both rounded down. There must be at least one sample.
func spread(s *stats.Samples) (mean, deviation int64) {
	n := int64(len(s.List))
	for _, at := range s.List {
		mean += at.Took
	}
	mean /= n
	for _, at := range s.List {
		deviation += max(at.Took-mean, mean-at.Took)
	}
	return mean, deviation / n
}

// period returns the mean time between two consecutive samples in seconds. There must be at least
// one sample; for a single one the result is 0.
func period(s *stats.Samples) float64 {
	n := len(s.List)
	return float64(s.List[n-1].At-s.List[0].At) / float64(max(1, n-1))
}
