package persistence

import "time"

// maxPauses bounds the pauses that delay an fsync, in case the stopwatch does not advance.
const maxPauses = 128

// answerTime is about the time that an event loop takes to send a reply and read the next command.
const answerTime = 10 * time.Microsecond

// awaitGroup implements group commit. It delays an fsync until the callers that the last fsync
// served have new records. If the fsync began without them, each would wait for two fsyncs,
// and there would be twice as many.
func (l *Log) awaitGroup() {
	fsync := time.Duration(l.counts.lastSync.Load())
	began := l.o.Stopwatch()
	latest, before := began, 0
	for range maxPauses {
		now := l.o.Stopwatch()
		l.mu.Lock()
		n, crowd := len(l.waiters), l.crowd
		l.mu.Unlock()
		if n > before {
			latest, before = now, n
		}
		if due(n, crowd, now-latest, now-began, fsync) {
			return
		}
		shortPause()
		if l.o.Stopwatch() == now {
			return // time is virtual in a test, and does not pass here
		}
	}
}

// due reports whether an fsync should begin for n of crowd expected callers. quiet is the time
// since the last of them came, and waited the time for which the fsync has been delayed. Seven
// eighths of the crowd are enough: the others keep the event loops busy during the fsync, and
// belong to the next one. The fsync does not wait for callers that stay away for longer than
// another fsync and the replies to all missing callers take.
func due(n, crowd int, quiet, waited, fsync time.Duration) bool {
	if 8*n >= 7*crowd {
		return true
	}
	return quiet > fsync+time.Duration(crowd-n)*answerTime || waited > fsync+time.Duration(crowd)*answerTime
}
