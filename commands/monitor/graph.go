package monitor

import (
	"fmt"
	"strings"

	"github.com/cellserver/cellserver/stats"
)

const (
	graphRows    = 4
	graphColumns = 80
	graphLevels  = "_o#" // the marks for a row, from its bottom to its top
)

// graph returns the text of LATENCY GRAPH for s, the samples of an event, of which there must be at
// least one. now is the present Unix time in seconds. Each of the newest samples has a column, and
// below it its age, written downwards.
func graph(s *stats.Samples, now int64) string {
	samples := s.List[max(0, len(s.List)-graphColumns):]
	low, high := samples[0].Took, samples[0].Took
	for _, at := range samples {
		low, high = min(low, at.Took), max(high, at.Took)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s - high %d ms, low %d ms (all time high %d ms)\n", s.Event, high, low, s.Worst)
	b.WriteString(strings.Repeat("-", graphColumns) + "\n")
	labels := make([]string, len(samples))
	longest := 0
	for i, at := range samples {
		labels[i] = ago(now - at.At)
		longest = max(longest, len(labels[i]))
	}
	for row := graphRows - 1; row >= 0; row-- {
		for _, at := range samples {
			b.WriteByte(cell(at.Took, low, high, row))
		}
		b.WriteByte('\n')
	}
	b.WriteString(strings.Repeat(" ", len(samples)) + "\n")
	for i := range longest {
		for _, l := range labels {
			b.WriteByte((l + "   ")[i])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// cell returns the character that the column for value has in row. low and high are the lowest and
// the highest value. The lowest row is 0. If low equals high, all columns have the lowest level.
func cell(value, low, high int64, row int) byte {
	const levels = graphRows * int64(len(graphLevels))
	level := int64(0)
	if high > low {
		level = min((value-low)*levels/(high-low), levels-1)
	}
	level -= int64(row * len(graphLevels))
	switch {
	case level < 0:
		return ' '
	case level >= int64(len(graphLevels)):
		return '|'
	}
	return graphLevels[level]
}

// ago formats an age of so many seconds in at most three characters. Ages above 99 days are shown
// as 99 days, and negative ones as 0 seconds.
func ago(seconds int64) string {
	seconds = max(0, seconds)
	switch {
	case seconds < 60:
		return fmt.Sprintf("%ds", seconds)
	case seconds < 3600:
		return fmt.Sprintf("%dm", seconds/60)
	case seconds < 86400:
		return fmt.Sprintf("%dh", seconds/3600)
	}
	return fmt.Sprintf("%dd", min(seconds/86400, 99))
}
