package limiters

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/slidingwindow"
)

// TestSlidingWindowRecorded replays the recorded replies of an exact model of SW.ALLOW through
// parse, decide, apply and a map. In the two files about changed parameters, the scenarios of
// other families are skipped; other tests replay them.
func TestSlidingWindowRecorded(t *testing.T) {
	effort.Alone(t)
	steps, elsewhere := 0, 0
	for _, name := range []string{"sw", "sw-decided", "changes", "changes-decided"} {
		for _, scenario := range readRecorded(t, "limiters/"+name+".jsonl.gz") {
			if strings.HasPrefix(name, "changes") && !strings.HasPrefix(scenario.name, "changes-sw-") {
				continue
			}
			store := windowStore{}
			for i, step := range scenario.steps {
				steps++
				got := store.run(step.at, step.args)
				if err, isError := step.want[0].(resp.Error); got == nil && isError && err != resp.ErrWrongType {
					elsewhere++ // a call of another family that fails because of its arguments alone
					continue
				}
				if got == nil && store[string(step.args[1])] != nil {
					got = resp.ErrWrongType // a call of another family on a key with a window
				}
				if !step.matches(got) {
					t.Errorf("%s: %s step %d: %q\n got %v\nwant %v", name, scenario.name, i, step.args, got, step.want)
				}
			}
		}
	}
	require.Equal(t, 16534+4184+4250, steps)
	require.Equal(t, 31, elsewhere)
}

// windowStore is a minimal store for the recorded scenarios.
type windowStore map[string]*windowEntry

type windowEntry struct {
	mode   slidingwindow.Mode
	value  []byte
	expiry limit.Instant
}

// run runs one command. It returns nil for a command of another family.
func (s windowStore) run(now limit.Instant, args [][]byte) any {
	for key, e := range s {
		if e.expiry <= now {
			delete(s, key)
		}
	}
	name, args := strings.ToUpper(string(args[0])), args[1:]
	e := s[string(args[0])]
	switch name {
	case "SW.ALLOW":
		return s.allow(now, args)
	case "EXISTS":
		if e == nil {
			return int64(0)
		}
		return int64(1)
	case "TYPE":
		if e == nil {
			return "none"
		}
		return "ratelimit"
	case "PTTL":
		if e == nil {
			return int64(-2)
		}
		return limit.MillisUp(e.expiry.Sub(now))
	case "DEL":
		delete(s, string(args[0]))
		if e == nil {
			return int64(0)
		}
		return int64(1)
	}
	return nil
}

func (s windowStore) allow(now limit.Instant, args [][]byte) any {
	var c slidingwindow.Call
	if err := clause.SlidingWindow(args, slidingwindow.DefaultLogMaxEntries, &c, nil); err != "" {
		return err
	}
	d, err := s.decide(now, string(args[0]), &c)
	if err != nil {
		return command.StoreError(err)
	}
	up := limit.SecondsUp
	if c.Millis {
		up = limit.MillisUp
	}
	return []any{d.Refused, d.Limit, d.Remaining, up(d.RetryAfter), up(d.ResetAfter)}
}

// decide decides c, applies the plan and checks what it stores.
func (s windowStore) decide(now limit.Instant, key string, c *slidingwindow.Call) (limit.Decision, error) {
	var p slidingwindow.Plan
	e := s[key]
	if e == nil {
		e = &windowEntry{}
	}
	if err := slidingwindow.Decide(e.mode, e.value, e.expiry, now, c, &p); err != nil {
		return limit.Decision{}, err
	}
	switch p.Action {
	case slidingwindow.Delete:
		delete(s, key)
	case slidingwindow.Store:
		e.value, e.mode, e.expiry = p.Apply(e.value, nil), p.Mode, p.Expiry
		s[key] = e
		if err := slidingwindow.Check(e.mode, e.value); err != nil {
			return limit.Decision{}, err
		}
	case slidingwindow.Keep:
	}
	return p.Decision, nil
}

// TestSlidingWindowUnits compares MS with the same windows in seconds.
func TestSlidingWindowUnits(t *testing.T) {
	var seconds, millis slidingwindow.Call
	require.Empty(t, clause.SlidingWindow(words("k 5 2 ANCHOR 1"), 0, &seconds, nil))
	require.Empty(t, clause.SlidingWindow(words("k 5 2000 ANCHOR 1000 MS"), 0, &millis, nil))
	require.Equal(t, 2*time.Second, seconds.Window)
	millis.Millis = false
	require.Equal(t, seconds, millis)
}

// words splits a line into arguments.
func words(line string) [][]byte {
	var args [][]byte
	for _, w := range strings.Fields(line) {
		args = append(args, []byte(w))
	}
	return args
}
