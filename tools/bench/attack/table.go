package attack

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Table writes results as a table in Markdown, one line for each attack and server.
func Table(w io.Writer, results []*Result) error {
	lines := []string{
		"| attack | server | peak, MiB | bound | others' p50, ms | p99 | p99.9 | max | idle server's p50 | p99.9 | served | refused | closed | late | seconds | user CPU, s | MB/s | more |",
		"|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|",
	}
	for _, r := range results {
		lines = append(lines, "| "+strings.Join(r.cells(), " | ")+" |")
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// cells returns the cells of the table's row for r.
func (r *Result) cells() []string {
	if r.Skipped != "" {
		return append([]string{r.Attack, r.Server}, append(strings.Split(strings.Repeat("-", 15), ""), r.Skipped)...)
	}
	number := func(n int64) string { return fmt.Sprint(n) }
	bound, rate, idle, idleMost := "-", "-", "-", "-"
	if r.Cell {
		bound = number(r.Bound >> 20)
	}
	if r.Idle.Count > 0 {
		idle, idleMost = milliseconds(r.Idle.P50), milliseconds(r.Idle.P999)
	}
	if r.Elapsed > 0 {
		rate = fmt.Sprintf("%.0f", float64(r.Bytes)/1e6/r.Elapsed.Seconds())
	}
	return []string{
		r.Attack, r.Server, number(r.Peak >> 20), bound,
		milliseconds(r.Others.P50), milliseconds(r.Others.P99), milliseconds(r.Others.P999), milliseconds(r.Others.Worst),
		idle, idleMost,
		number(r.Served), number(r.Refused), number(r.Closed), number(r.Late),
		fmt.Sprintf("%.1f", r.Elapsed.Seconds()), fmt.Sprintf("%.2f", r.User.Seconds()), rate, strings.Join(r.more(), "; "),
	}
}

// more returns the content of the last column: figures without a column of their own.
func (r *Result) more() []string {
	notes := r.Notes
	if errors := r.errorList(); errors != "" {
		notes = append(notes[:len(notes):len(notes)], "errors: "+errors)
	}
	if r.Others.Refused > 0 {
		notes = append(notes[:len(notes):len(notes)], fmt.Sprintf("others: %d %s", r.Others.Refused, firstWord(r.Others.First)))
	}
	if r.Others.Unanswered > 0 {
		notes = append(notes[:len(notes):len(notes)], fmt.Sprintf("others: %d unanswered", r.Others.Unanswered))
	}
	if r.ProbeFault != "" {
		notes = append(notes[:len(notes):len(notes)], "others: "+r.ProbeFault)
	}
	if r.Died != "" {
		notes = append(notes[:len(notes):len(notes)], "**the server died**")
	}
	return notes
}

// milliseconds formats a time in ms: with two decimals below 10, one below 100, and none from 100
// on.
func milliseconds(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms >= 100:
		return fmt.Sprintf("%.0f", ms)
	case ms >= 10:
		return fmt.Sprintf("%.1f", ms)
	}
	return fmt.Sprintf("%.2f", ms)
}
