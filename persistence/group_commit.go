package persistence

import "time"

// maxPauses is the maximum number of pauses that delay an fsync.
const maxPauses = 128

// answerTime is about the time that an event loop takes to send a reply and to read the next
// command.
const answerTime = 10 * time.Microsecond

// awaitGroup implements group commit. It delays an fsync until the callers that the last fsync
// served have appended new records, or until waiting no longer pays: see due. If the fsync began
// without these callers, each of them would wait for two fsyncs, and there would be twice as many
// fsyncs. awaitGroup pauses at most maxPauses times.
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
			return // in a test with virtual time, the stopwatch does not advance here
		}
	}
}

// due reports whether an fsync should begin now that n of crowd expected callers wait for it. quiet
// is the time since the last caller came, waited is the time for which the fsync has been delayed,
// and fsync is the duration of the last fsync. Seven eighths of the crowd are enough: the others
// keep the event loops busy during the fsync, and are served by the next one. If no caller comes
// for longer than an fsync and the replies to all missing callers take, the fsync begins without
// them. It also begins once it was delayed for longer than an fsync and the replies to all expected
// callers take.
func due(n, crowd int, quiet, waited, fsync time.Duration) bool {
	if 8*n >= 7*crowd {
		return true
	}
	return quiet > fsync+time.Duration(crowd-n)*answerTime || waited > fsync+time.Duration(crowd)*answerTime
}
