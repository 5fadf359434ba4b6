package hotkeys

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// mixed counts calls that find the state of another limit under their key, such as a window with
// another mode or a token bucket with another rate. If this happens to a key only once, the limit of
// the key was changed. If it happens repeatedly, two limits share the key and count each other's
// calls. A single call does not show which is the case, so no call is refused. Any goroutine may use
// a mixed.
type mixed struct {
	calls atomic.Int64

	mu     sync.Mutex
	keys   map[topName]*mixedKey // the keys that are remembered, at most maxMixed; guarded by mu
	warned limit.Instant         // the instant of the latest warning; 0 before the first; guarded by mu
	told   int64                 // the value of calls at the latest warning; guarded by mu
}

// mixedKey has the number of calls that found the state of another limit under one key, and the
// instant of the latest.
type mixedKey struct {
	calls int64
	last  limit.Instant
}

const (
	// maxMixed is the maximum number of keys that are remembered.
	maxMixed = 256
	// mixedFor is the time for which a key is remembered after the latest call that found the state
	// of another limit. mixedTwice is the number of such calls at which the key counts as shared by
	// two limits.
	mixedFor, mixedTwice = time.Hour, 2
	// mixedWarning is the minimum time between two warnings in the log.
	mixedWarning = time.Minute
)

// note counts a call at the instant now that has found the state of another limit under key. If
// warn is true, the caller has to log a warning with calls, the number of such calls since the
// latest warning. A key longer than topKey bytes is counted in m.calls only.
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

// add adds an entry for key and returns it. If there are maxMixed keys, the new entry replaces the
// one whose latest call is the oldest. m.mu is held.
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

// has reports whether two limits share key: mixedTwice calls have found the state of another limit,
// the latest of them within mixedFor before now.
func (m *mixed) has(db int, key string, now limit.Instant) bool {
	if m.calls.Load() == 0 {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.keys[topName{db, key}]
	return k != nil && k.calls >= mixedTwice && now.Sub(k.last) <= mixedFor
}

// reset removes all keys and counts.
func (m *mixed) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls.Store(0)
	m.keys, m.warned, m.told = nil, 0, 0
}
