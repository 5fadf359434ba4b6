package stats

import (
	"sync"
	"sync/atomic"
	"time"
)

// Event is a kind of work that may delay clients and that the latency monitor watches.
type Event uint8

// These are the events that the latency monitor watches.
const (
	CommandEvent     Event = iota // a command without the flag fast
	FastCommandEvent              // a command with the flag fast, or a batch of them
	ScriptEvent                   // a script, which is also a command
	ExpireEvent                   // the removal of keys that have expired
	WriteEvent                    // a write to the AOF
	SyncEvent                     // an fsync of the AOF
	events                        // the number of events
)

// String returns the name that the event has in LATENCY.
func (e Event) String() string {
	return [events]string{"command", "fast-command", "script", "expire-cycle", "aof-write", "aof-fsync"}[e]
}

// EventNamed returns the event called name, and whether there is one.
func EventNamed(name string) (Event, bool) {
	for e := range events {
		if e.String() == name {
			return e, true
		}
	}
	return 0, false
}

// maxSamples is the maximum number of samples that are kept for an event, as in Redis.
const maxSamples = 160

// Sample is the longest duration of an event in one second.
type Sample struct {
	At   int64 // civil time of the second in Unix seconds
	Took int64 // duration in milliseconds
}

// Samples has the kept samples of one event.
type Samples struct {
	Event Event
	List  []Sample // the samples, the oldest first, at most one for each second
	Worst int64    // the longest duration since the last reset, in milliseconds
}

// Events records the events that took long, for LATENCY. Any goroutine may use it.
type Events struct {
	threshold atomic.Int64 // minimum duration of a recorded event in nanoseconds; 0 means that none is recorded

	mu   sync.Mutex
	kept [events]Samples // the samples of each event; guarded by mu
}

// SetThreshold sets the minimum duration of an event that is recorded. With 0 no event is recorded.
func (es *Events) SetThreshold(d time.Duration) { es.threshold.Store(int64(d)) }

// Threshold returns the minimum duration of an event that is recorded; 0 if none is.
func (es *Events) Threshold() time.Duration { return time.Duration(es.threshold.Load()) }

// Watches reports whether an event that took d is recorded.
func (es *Events) Watches(d time.Duration) bool {
	t := es.threshold.Load()
	return t > 0 && int64(d) >= t
}

// Note records the event e, which took d, if it took long enough. at is the civil time at its end,
// in Unix seconds. Of the events of one second only the longest is kept, and beyond maxSamples
// samples the oldest is dropped.
func (es *Events) Note(e Event, d time.Duration, at int64) {
	if !es.Watches(d) {
		return
	}
	es.mu.Lock()
	defer es.mu.Unlock()
	s := &es.kept[e]
	took := d.Milliseconds()
	s.Worst = max(s.Worst, took)
	if n := len(s.List); n > 0 && s.List[n-1].At == at {
		s.List[n-1].Took = max(s.List[n-1].Took, took)
		return
	}
	if len(s.List) == maxSamples {
		copy(s.List, s.List[1:])
		s.List = s.List[:maxSamples-1]
	}
	s.List = append(s.List, Sample{at, took})
}

// Of returns a copy of the samples of e; ok is false if there are none.
func (es *Events) Of(e Event) (s Samples, ok bool) {
	es.mu.Lock()
	defer es.mu.Unlock()
	return es.copyOf(e)
}

// All returns copies of the samples of all events that have some.
func (es *Events) All() (all []Samples) {
	es.mu.Lock()
	defer es.mu.Unlock()
	for e := range events {
		if s, ok := es.copyOf(e); ok {
			all = append(all, s)
		}
	}
	return all
}

// copyOf returns a copy of the samples of e, and false if there are none. The caller holds es.mu.
func (es *Events) copyOf(e Event) (s Samples, ok bool) {
	kept := &es.kept[e]
	return Samples{e, append([]Sample(nil), kept.List...), kept.Worst}, len(kept.List) > 0
}

// Reset removes the samples of e, and reports whether there were any.
func (es *Events) Reset(e Event) bool {
	es.mu.Lock()
	defer es.mu.Unlock()
	had := len(es.kept[e].List) > 0
	es.kept[e] = Samples{}
	return had
}

// ResetAll removes the samples of all events, and returns the number of events that had some.
func (es *Events) ResetAll() (n int) {
	for e := range events {
		if es.Reset(e) {
			n++
		}
	}
	return n
}
