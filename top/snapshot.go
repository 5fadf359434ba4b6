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
	Span  int64 // length of the history in seconds
	Calls bool  // whether to show the keys with the most calls, and not those with the most denials
	Group string
	Own   bool // whether to show only this server, although it shares a store with others
}

// maxKeys is the number of keys to request: enough for a tall terminal.
const maxKeys = "50"

// Ask reads a snapshot from the source from, with one command for each part. c selects the span of
// the history and the keys. If the server shares a store with others, the figures are those of all, unless c says
// otherwise. After an error the snapshot is incomplete.
func Ask(ctx context.Context, from Source, c Choice) (s Snapshot, err error) {
	by := "denied"
	if c.Calls {
		by = "calls"
	}
	keys := []string{"KEYS", "BY", by, "COUNT", maxKeys}
	if c.Group != "" {
		keys = append(keys, "GROUP", c.Group)
	}
	history := []string{"HISTORY", "SPAN", fmt.Sprint(c.Span)}
	if err := ask(ctx, from, &s.Overview, "OVERVIEW"); err != nil {
		return s, err
	}
	all := []part{{&s.History, history}, {&s.Keys, keys}, {&s.Groups, []string{"GROUPS"}}}
	var k report.FleetKeys
	var g report.FleetGroups
	fleet := len(s.Overview.Servers) > 1 && !c.Own
	if fleet {
		all = []part{{&s.Overview, []string{"OVERVIEW"}}, {&s.History, history}, {&k, keys}, {&g, []string{"GROUPS"}}}
		for i := range all {
			all[i].words = append(all[i].words, "FLEET")
		}
	}
	for _, p := range append(all, part{&s.Changes, []string{"CHANGES"}}) {
		if err := ask(ctx, from, p.into, p.words...); err != nil {
			return s, err
		}
	}
	if fleet {
		s.Keys, s.Groups = k.Keys, g.Groups
	}
	return s, nil
}

// part is a part of a snapshot with the words of its report.
type part struct {
	into  any
	words []string
}

// ask reads the report with the given words.
func ask(ctx context.Context, from Source, into any, words ...string) error {
	text, err := from(ctx, append([]string{"RL.REPORT"}, words...)...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("reading the reply of RL.REPORT %s: %w", words[0], err)
	}
	return nil
}
