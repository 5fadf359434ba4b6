package limiters

import (
	"bytes"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
)

// mixed counts calls that find the usage of another limit under their key: of windows, a mode or a
// rate other than theirs. Once for a key, that is a changed limit. Again and again, two limits share
// the key, and count each other's calls. Nothing tells the two apart by one call, so none is refused.
// Any goroutine may use it.
type mixed struct {
	calls atomic.Int64

	mu     sync.Mutex
	keys   map[topName]*mixedKey // guarded by mu: at most maxMixed
	warned limit.Instant         // guarded by mu: when the log was told
	told   int64                 // guarded by mu: how many calls the log was told of
}

// mixedKey is how often a key was found so, and when last.
type mixedKey struct {
	calls int64
	last  limit.Instant
}

const (
	// maxMixed bounds the keys that are remembered.
	maxMixed = 256
	// mixedFor is for how long a key is remembered, and mixedTwice from how many calls on it counts
	// as one with two limits.
	mixedFor, mixedTwice = time.Hour, 2
	// mixedWarning is how often the log is told at most.
	mixedWarning = time.Minute
)

// note notes a call about key. Its answer is warn if the log is to be told, of so many calls since
// it was told last.
func (m *mixed) note(db int, key []byte, now limit.Instant) (calls int64, warn bool) {
	all := m.calls.Add(1)
	if len(key) > topKey {
		return 0, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.keys[topName{db, string(key)}]
	if k == nil || now.Sub(k.last) > mixedFor {
		k = m.add(db, key, now)
	}
	k.calls, k.last = k.calls+1, now
	if k.calls < mixedTwice || m.warned != 0 && now.Sub(m.warned) < mixedWarning {
		return 0, false
	}
	calls, m.warned, m.told = all-m.told, now, all
	return calls, true
}

// add begins to count for a key, in the place of the one that was seen least lately if there are too
// many. m.mu is held.
func (m *mixed) add(db int, key []byte, now limit.Instant) *mixedKey {
	if m.keys == nil {
		m.keys = make(map[topName]*mixedKey)
	}
	if len(m.keys) >= maxMixed {
		oldest, at := topName{}, limit.MaxInstant
		for name, k := range m.keys {
			if k.last < at {
				oldest, at = name, k.last
			}
		}
		delete(m.keys, oldest)
	}
	k := &mixedKey{last: now}
	m.keys[topName{db, string(key)}] = k
	return k
}

// has reports whether a key has two limits.
func (m *mixed) has(db int, key string, now limit.Instant) bool {
	if m.calls.Load() == 0 {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.keys[topName{db, key}]
	return k != nil && k.calls >= mixedTwice && now.Sub(k.last) <= mixedFor
}

// reset forgets everything.
func (m *mixed) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls.Store(0)
	m.keys, m.warned, m.told = nil, 0, 0
}

// noteMixed notes the decision on a, if key is the one under which it found another limit.
func (s *scratch) noteMixed(c *command.Call, a *decide.Ask, key []byte) {
	if a.Family == decide.Several && !bytes.Equal(key, a.Clauses[a.Foreign-1].Key) {
		return
	}
	if calls, warn := s.mixed.note(a.DB, key, c.Store.Now()); warn {
		c.Server.Log.Warn("two limits share a key and count each other's calls, see RL.TOP CALLS WITHDETAILS", "calls", calls)
	}
}
