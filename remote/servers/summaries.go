package servers

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/cellserver/cellserver/decide"

	_ "embed" // the scripts
)

const (
	// SummaryPeriod is the time between two summaries of a server.
	SummaryPeriod = 5 * time.Second
	// SummaryLate is the age from which a summary is late: its server should have published two
	// more since then.
	SummaryLate = 3 * SummaryPeriod
	// summaryLive is the time after which a summary expires.
	summaryLive = 2 * SummaryLate
	// MaxSummary is the maximum size of a summary, in bytes.
	MaxSummary = 96 << 10
	// summariesOnce is the number of summaries that one request reads.
	summariesOnce = 16
	// maxStamp is the maximum length in bytes of the time that precedes a stored summary, including
	// the space after it.
	maxStamp = 14
)

var (
	//go:embed publish.lua
	publishScript string
	//go:embed summaries.lua
	summariesScript string
)

var (
	errLargeSummary = errors.New("a summary has at most 96 KiB")
	errSummaries    = errors.New("the store replied no summaries")
)

// Summary has the bytes that another server has published, and their age.
type Summary struct {
	// ID is the id of the server, as in [Server].
	ID string
	// Bytes are the bytes of the server, which may have another version; nil if there are none.
	Bytes []byte
	// Age is the time since the server has written Bytes, by the clock of the engine.
	Age time.Duration
}

// Late reports whether the summary is late, if more is the time since Age was measured.
func (s *Summary) Late(more time.Duration) bool { return s.Age+more >= SummaryLate }

// summaryKey returns the key of the summary of a server with an id of [Options].
func summaryKey(id string) string { return Key + ":" + id }

// Publish writes summary, of at most [MaxSummary] bytes, for other servers to read. It expires some periods after it
// has become late. Publish waits for the engine, one second at most.
func (l *List) Publish(ctx context.Context, summary []byte) error {
	if len(summary) > MaxSummary {
		return errLargeSummary
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := l.o.Engine.Eval(ctx, publishScript, []string{summaryKey(l.o.ID)}, []string{string(summary), millis(summaryLive)})
	return err
}

// Summaries returns the latest summary of each of the other servers that were live at the latest beat, in the order of
// [List.Seen]. Summaries waits for the engine until ctx ends, one second for each 16 servers at most. The error is a
// [decide.Unavailable].
func (l *List) Summaries(ctx context.Context) ([]Summary, error) {
	if l.Seen() == nil {
		return nil, decide.Unavailable("the servers of the store are not known yet")
	}
	var all []Summary
	for _, s := range l.Seen() {
		if s.ID != l.o.ID {
			all = append(all, Summary{ID: s.ID})
		}
	}
	for rest := all; len(rest) > 0; {
		n := min(len(rest), summariesOnce)
		if err := l.read(ctx, rest[:n]); err != nil {
			return nil, decide.Unavailable("the summaries of other servers are not available: " + err.Error())
		}
		rest = rest[n:]
	}
	return all, nil
}

// read reads the summaries of the servers in all.
func (l *List) read(ctx context.Context, all []Summary) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	keys := make([]string, len(all))
	for i := range all {
		keys[i] = summaryKey(all[i].ID)
	}
	reply, err := l.o.Engine.Eval(ctx, summariesScript, keys, []string{strconv.Itoa(maxStamp + MaxSummary)})
	if err != nil {
		return err
	}
	texts, ok := reply.([]any)
	if !ok || len(texts) != 1+len(keys) {
		return errSummaries
	}
	now := int64(-1)
	for i, one := range texts {
		text, ok := one.(string)
		if !ok {
			return errSummaries
		}
		if i > 0 {
			all[i-1].set(text, now)
			continue
		}
		if now = parseMillis(text); now < 0 {
			return errSummaries
		}
	}
	return nil
}

// set sets the bytes and the age of s by text, a value in the engine at the time now in Unix milliseconds. text may be
// any bytes; if it is not such a value, s does not change.
func (s *Summary) set(text string, now int64) {
	stamp, b, _ := strings.Cut(text, " ")
	if at := parseMillis(stamp); at >= 0 && b != "" && len(b) <= MaxSummary {
		s.Bytes, s.Age = []byte(b), time.Duration(max(0, now-at))*time.Millisecond
	}
}

// parseMillis returns the time that text has in Unix milliseconds, or -1 if it has none.
func parseMillis(text string) int64 {
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms < 0 || ms > maxMillis {
		return -1
	}
	return ms
}
