package top

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/cellserver/cellserver/report"
)

// shown returns text of a client in a form that is safe to print on a terminal: bytes that are not
// UTF-8 as \x.., and characters that move the cursor or change the direction of the text as
// \u{....}.
func shown[T ~string](text T) string {
	var b strings.Builder
	for s := string(text); s != ""; {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case r < utf8.RuneSelf && !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\x%02x`, r)
		case !unicode.IsPrint(r) && r != ' ':
			fmt.Fprintf(&b, `\u{%04x}`, r)
		default:
			b.WriteRune(r)
		}
		s = s[size:]
	}
	return b.String()
}

// fit truncates text to a width of the terminal, or pads it, on the left if right is set.
func fit(text string, width int, right bool) string {
	text = ansi.Truncate(text, max(0, width), "…")
	space := strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
	if right {
		return space + text
	}
	return text + space
}

// amount formats n. Below 999.95 million the text has at most six characters.
func amount(n float64) string {
	switch {
	case n >= 999_950:
		return fmt.Sprintf("%.1fM", n/1e6)
	case n >= 9_999.5:
		return fmt.Sprintf("%.1fk", n/1e3)
	case n >= 10 || n == float64(int64(n)):
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprintf("%.1f", n)
}

// percent formats a ratio as a percentage, with one decimal below 10 %. A ratio below 0.05 %
// becomes "<0.1 %", and a negative one, which is unknown, a dash.
func percent(r float64) string {
	switch {
	case r < 0:
		return "–"
	case r > 0 && r < 0.0005:
		return "<0.1 %"
	case r == 0 || r >= 0.1:
		return fmt.Sprintf("%.0f %%", r*100)
	}
	return fmt.Sprintf("%.1f %%", r*100)
}

func plural(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return amount(float64(n)) + " " + one + "s"
}

// millis formats microseconds, in milliseconds from one millisecond on.
func millis(us float64) string {
	switch {
	case us >= 1e5:
		return fmt.Sprintf("%.0f ms", us/1e3)
	case us >= 999.5:
		return fmt.Sprintf("%.2f ms", us/1e3)
	case us >= 10 || us <= 0:
		return fmt.Sprintf("%.0f µs", us)
	}
	return fmt.Sprintf("%.1f µs", us)
}

func mebibytes(n int64) string { return strconv.FormatInt(n>>20, 10) + " MiB" }

// clock formats at, a time in Unix milliseconds, as the time of day in UTC, with the date if that
// is not the date of now. 0 is unknown and becomes a dash.
func clock(at, now int64) string {
	if at <= 0 {
		return "–"
	}
	t, n := time.UnixMilli(at).UTC(), time.UnixMilli(now).UTC()
	if t.YearDay() != n.YearDay() || t.Year() != n.Year() {
		return t.Format("01-02 15:04")
	}
	return t.Format("15:04")
}

func uptime(seconds int64) string {
	d := time.Duration(seconds) * time.Second
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", seconds)
	case d < time.Hour:
		return fmt.Sprintf("%d min", seconds/60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %d min", seconds/3600, seconds%3600/60)
	}
	return fmt.Sprintf("%d d %d h", seconds/86400, seconds%86400/3600)
}

// callers formats the clients that call a key: the name and the library of the first one, and the
// number of clients if there are several. A single client without these is shown by its address. No
// client is "not connected".
func callers(cs []report.Caller) string {
	if len(cs) == 0 {
		return "not connected"
	}
	var parts []string
	for _, p := range []string{shown(cs[0].Name), shown(cs[0].Lib)} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if len(cs) > 1 {
		parts = append(parts, strconv.Itoa(len(cs))+" clients")
	} else if len(parts) == 0 {
		parts = append(parts, cs[0].Addr)
	}
	return strings.Join(parts, " · ")
}

// groupName returns the name of a group for display: quoted if it is blank.
func groupName(k report.Key) string {
	if strings.TrimSpace(string(k)) == "" {
		return strconv.Quote(string(k))
	}
	return shown(k)
}

// sign returns one character and one word for the kind of a verdict.
func sign(v *report.Verdict) (mark, word string) {
	switch {
	case v.Sick:
		return "✕", "sick"
	case v.Kind == report.Healthy:
		return "✓", "healthy"
	case v.Kind == report.Idle:
		return "–", "idle"
	case v.Kind == report.Failing:
		return "!", "check"
	}
	return "▲", "denies"
}

var blocks = []rune("▁▂▃▄▅▆▇█")

// bars draws values as columns on one line of at most width characters, the newest on the right.
// top is the value of a column of full height. If there are more values than characters, each
// column is an average.
func bars(values []float64, width int, top float64) string {
	if width <= 0 || len(values) == 0 {
		return ""
	}
	var b strings.Builder
	n := min(width, len(values))
	for i := range n {
		sum, from, to := 0.0, i*len(values)/n, (i+1)*len(values)/n
		for _, v := range values[from:to] {
			sum += v
		}
		v := sum / float64(to-from)
		switch {
		case v <= 0 || top <= 0:
			b.WriteByte(' ')
		default:
			b.WriteRune(blocks[min(len(blocks)-1, int(v/top*float64(len(blocks))))])
		}
	}
	return b.String()
}
