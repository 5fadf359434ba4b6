package limiters

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/clause"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/tokenbucket"
)

// TestAcquireRecorded replays the recorded calls of TB.ACQUIRE through parse, decide, apply and a
// map, with natural expiry. In an RL.MULTI it decides the TB clauses, and takes from the recorded
// reply only whether the clauses of other families let the call pass. Of keys of other families
// it knows only the names.
func TestAcquireRecorded(t *testing.T) {
	effort.Alone(t)
	for _, file := range []struct {
		name                       string
		acquired, clauses, details int
	}{
		{"limiters/tb.jsonl.gz", 15138, 0, 0},
		{"limiters/changes.jsonl.gz", 4929, 1161, 585},
		{"limiters/changes-decided.jsonl.gz", 2181, 487, 255},
		{"limiters/multi.jsonl.gz", 900, 9348, 4736},
		{"limiters/multi-decided.jsonl.gz", 189, 2068, 966},
	} {
		t.Run(file.name, func(t *testing.T) {
			var played bucketStore
			for _, scenario := range readRecorded(t, file.name) {
				store := bucketStore{keys: map[string]*bucketEntry{}}
				for i, step := range scenario.steps {
					got, judged := store.run(t, &step)
					if judged && !step.matches(got) {
						t.Errorf("%s step %d at %d: %q\n got %v\nwant %v", scenario.name, i, step.at, step.args, got, step.want)
					}
				}
				played.acquired += store.acquired
				played.clauses += store.clauses
				played.details += store.details
			}
			require.Equal(t, file.acquired, played.acquired)
			require.Equal(t, file.clauses, played.clauses)
			require.Equal(t, file.details, played.details)
		})
	}
}

// bucketStore is a minimal store for the recorded scenarios of token buckets.
type bucketStore struct {
	keys map[string]*bucketEntry
	// The numbers of compared calls, RL.MULTI clauses and detailed replies of clauses.
	acquired, clauses, details int
}

// bucketEntry is a key. A foreign one belongs to another family: the test knows only that a
// recorded call has created it.
type bucketEntry struct {
	foreign bool
	mode    tokenbucket.Mode
	value   []byte
	expiry  limit.Instant
}

// run runs a step. judged is false for a step that only another family could answer.
func (s *bucketStore) run(t *testing.T, step *recordedStep) (got any, judged bool) {
	s.expire(step.at)
	name, args := strings.ToUpper(string(step.args[0])), step.args[1:]
	refused, failed := step.want[0].(resp.Error)
	if name == "RL.MULTI" {
		if !failed {
			s.multi(t, step, args)
		}
		return nil, false
	}
	if len(args) == 0 {
		return nil, false
	}
	key := string(args[0])
	e := s.keys[key]
	if e != nil && e.foreign && name == "TB.ACQUIRE" && refused != resp.ErrWrongType {
		delete(s.keys, key) // it must have expired
		e = nil
	}
	switch name {
	case "TB.ACQUIRE":
		s.acquired++
		return s.acquire(step.at, args), true
	case "DEL":
		delete(s.keys, key)
	case "EXISTS", "PTTL", "TYPE", "GET":
	case "CC.RELEASE", "CC.RENEW":
		return resp.ErrWrongType, e != nil && !e.foreign
	default:
		if !failed {
			s.keys[key] = &bucketEntry{foreign: true}
		}
		return resp.ErrWrongType, e != nil && !e.foreign && (!failed || refused == resp.ErrWrongType)
	}
	return e.read(step.at, name), e == nil && name != "GET" || e != nil && !e.foreign
}

func (s *bucketStore) expire(now limit.Instant) {
	for key, e := range s.keys {
		if !e.foreign && e.expiry <= now {
			delete(s.keys, key)
		}
	}
}

// read answers the commands that work on any type of key.
func (e *bucketEntry) read(now limit.Instant, name string) any {
	switch {
	case name == "TYPE" && e == nil:
		return "none"
	case name == "TYPE":
		return "ratelimit"
	case name == "PTTL" && e == nil:
		return int64(-2)
	case name == "PTTL":
		return limit.MillisUp(e.expiry.Sub(now))
	case name == "GET":
		return resp.ErrWrongType
	case e == nil:
		return int64(0)
	}
	return int64(1)
}

func (s *bucketStore) acquire(now limit.Instant, args [][]byte) any {
	var c tokenbucket.Call
	if err := clause.Acquire(args, &c, nil); err != "" {
		return err
	}
	key := string(args[0])
	if e := s.keys[key]; e != nil && e.foreign {
		return resp.ErrWrongType
	}
	p, err := s.decide(now, key, &c)
	if err != nil {
		return resp.ErrOverflow
	}
	s.apply(key, p)
	return bucketReply(&p.Decision, c.Millis)
}

func (s *bucketStore) decide(now limit.Instant, key string, c *tokenbucket.Call) (*tokenbucket.Plan, error) {
	e := s.keys[key]
	if e == nil {
		e = &bucketEntry{}
	}
	p := new(tokenbucket.Plan)
	return p, tokenbucket.Decide(e.mode, e.value, e.expiry, now, c, p)
}

func (s *bucketStore) apply(key string, p *tokenbucket.Plan) {
	switch p.Action {
	case tokenbucket.Delete:
		delete(s.keys, key)
	case tokenbucket.Store:
		var value []byte
		if e := s.keys[key]; e != nil {
			value = e.value
		}
		s.keys[key] = &bucketEntry{mode: p.Mode, value: p.Apply(value, nil), expiry: p.Expiry}
	}
}

// bucketReply returns a decision as TB.ACQUIRE replies with it.
func bucketReply(d *limit.Decision, millis bool) []any {
	round := limit.SecondsUp
	if millis {
		round = limit.MillisUp
	}
	return []any{d.Refused, d.Limit, d.Remaining, round(d.RetryAfter), round(d.ResetAfter)}
}

// multi decides the TB clauses of an RL.MULTI that did not fail.
func (s *bucketStore) multi(t *testing.T, step *recordedStep, args [][]byte) {
	t.Helper()
	m := cutMulti(args)
	five, ok := step.want[0].([]any)
	require.True(t, ok)
	var details []any
	if m.details {
		five, details = five[0].([]any), five[1].([]any)
	}
	denied := five[0] != int64(0)
	for i, words := range m.clauses {
		key := string(m.keys[i])
		if !arg.IsWord(words[0], "TB") {
			if e := s.keys[key]; !m.peek && !denied && e == nil {
				s.keys[key] = &bucketEntry{foreign: true}
			}
			continue
		}
		if e := s.keys[key]; e != nil && e.foreign {
			delete(s.keys, key) // it must have expired, or the call had failed
		}
		var room clause.Room
		_, failed := room.Parse(words, m.keys[i], clause.Options{Unit: m.unit})
		require.Empty(t, failed)
		c := room.Bucket
		if m.peek {
			c.Charge = tokenbucket.Peek
		}
		c.Denied = denied
		p, err := s.decide(step.at, key, &c)
		require.NoError(t, err)
		s.apply(key, p)
		s.clauses++
		if !denied {
			require.True(t, p.Decision.Allowed(), "%q at %d", step.args, step.at)
		}
		if m.details {
			s.details++
			require.Equal(t, details[i], bucketReply(&p.Decision, m.unit == time.Millisecond), "%q at %d", step.args, step.at)
		}
	}
}

// recordedMulti is an RL.MULTI, split into its parts.
type recordedMulti struct {
	keys    [][]byte
	clauses [][][]byte // each with the word of its family
	unit    time.Duration
	peek    bool
	details bool
}

func cutMulti(args [][]byte) (m recordedMulti) {
	n, _ := arg.Int(args[0])
	m.keys, args, m.unit = args[1:n+1], args[n+1:], time.Second
	for {
		last := args[len(args)-1]
		switch {
		case arg.IsWord(last, "MS"):
			m.unit = time.Millisecond
		case arg.IsWord(last, "PEEK"):
			m.peek = true
		case arg.IsWord(last, "WITHDETAILS"):
			m.details = true
		default:
			m.cut(args)
			return m
		}
		args = args[:len(args)-1]
	}
}

func (m *recordedMulti) cut(args [][]byte) {
	for i, word := range args {
		if arg.IsWord(word, "CL") || arg.IsWord(word, "SW") || arg.IsWord(word, "TB") {
			m.clauses = append(m.clauses, args[i:i:i])
		}
		last := &m.clauses[len(m.clauses)-1]
		*last = append(*last, word)
	}
}
