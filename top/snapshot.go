package top

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/cellserver/cellserver/report"
)

// Source sends a command and returns its reply, the JSON of a report.
type Source func(ctx context.Context, args ...string) ([]byte, error)

// Snapshot is the state of a server at one time.
type Snapshot struct {
	Overview report.Overview
	History  report.History
	Keys     []report.DeniedKey
	Groups   []report.Group
	Changes  []report.Change
}

// Choice is the user's selection.
type Choice struct {
	Span  int64 // seconds of history
	Calls bool  // the keys called most, instead of those denied most
	Group string
}

// maxKeys is the number of keys to request: enough for a tall terminal.
const maxKeys = "50"

// Ask reads a snapshot from the source from, with one command for each part. c selects the span of
// the history and the keys. After an error the snapshot is incomplete.
func Ask(ctx context.Context, from Source, c Choice) (s Snapshot, err error) {
	by := "denied"
	if c.Calls {
		by = "calls"
	}
	keys := []string{"RL.REPORT", "KEYS", "BY", by, "COUNT", maxKeys}
	if c.Group != "" {
		keys = append(keys, "GROUP", c.Group)
	}
	for _, q := range []struct {
		into any
		args []string
	}{
		{&s.Overview, []string{"RL.REPORT", "OVERVIEW"}},
		{&s.History, []string{"RL.REPORT", "HISTORY", "SPAN", fmt.Sprint(c.Span)}},
		{&s.Keys, keys},
		{&s.Groups, []string{"RL.REPORT", "GROUPS"}},
		{&s.Changes, []string{"RL.REPORT", "CHANGES"}},
	} {
		text, err := from(ctx, q.args...)
		if err != nil {
			return s, err
		}
		if err := json.Unmarshal(text, q.into); err != nil {
			return s, fmt.Errorf("reading the reply of %s %s: %w", q.args[0], q.args[1], err)
		}
	}
	return s, nil
}
