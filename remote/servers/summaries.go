package servers

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/cellserver/cellserver/decide"

	_ "embed" // the scripts
)

const (
	// SummaryPeriod is the time between two summaries of a server.
	SummaryPeriod = 5 * time.Second
	// summaryLive is the time after which a summary expires.
	summaryLive = 3 * SummaryPeriod
	// MaxSummary is the maximum size of a summary, in bytes.
	MaxSummary = 64 << 10
	// summariesOnce is the number of summaries that one request reads.
	summariesOnce = 16
)

var (
	//go:embed publish.lua
	publishScript string
	//go:embed summaries.lua
	summariesScript string
)

var (
	errLargeSummary = errors.New("a summary has at most 64 KiB")
	errSummaries    = errors.New("the store replied no summaries")
)

// summaryKey returns the key of the summary of a server with an id of [Options].
func summaryKey(id string) string { return Key + ":" + id }

// Publish writes summary, of at most [MaxSummary] bytes, for other servers to read. It expires after three
// periods. Publish waits for the engine, one second at most.
func (l *List) Publish(ctx context.Context, summary []byte) error {
	if len(summary) > MaxSummary {
		return errLargeSummary
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := l.o.Engine.Eval(ctx, publishScript, []string{summaryKey(l.o.ID)}, []string{string(summary), millis(summaryLive)})
	return err
}

// Summaries returns the latest summary of each of the other servers that were live at the latest beat, in no order. One that
// is not there is nil. Their bytes are as other servers have written them, perhaps of another version. Summaries waits
// for the engine, one second for each 16 servers at most. The error is a [decide.Unavailable].
func (l *List) Summaries(ctx context.Context) (all [][]byte, err error) {
	var keys []string
	for _, s := range l.Seen() {
		if s.ID != l.o.ID {
			keys = append(keys, summaryKey(s.ID))
		}
	}
	for len(keys) > 0 {
		n := min(len(keys), summariesOnce)
		if all, err = l.read(ctx, keys[:n], all); err != nil {
			return nil, decide.Unavailable("the summaries of other servers are not available: " + err.Error())
		}
		keys = keys[n:]
	}
	return all, nil
}

// read appends the summaries with the given keys to all.
func (l *List) read(ctx context.Context, keys []string, all [][]byte) ([][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	reply, err := l.o.Engine.Eval(ctx, summariesScript, keys, []string{strconv.Itoa(MaxSummary)})
	if err != nil {
		return nil, err
	}
	texts, ok := reply.([]any)
	if !ok || len(texts) != len(keys) {
		return nil, errSummaries
	}
	for _, one := range texts {
		text, ok := one.(string)
		if !ok {
			return nil, errSummaries
		}
		if text == "" || len(text) > MaxSummary {
			all = append(all, nil)
			continue
		}
		all = append(all, []byte(text))
	}
	return all, nil
}
