package persistence

import "time"

// moments bounds for how many of them an fsync is put off, whatever the stopwatch says.
const moments = 128

// answerTime is about what a loop takes to send one reply and read the next command.
const answerTime = 10 * time.Microsecond

// gather waits for those who were answered by the last fsync to ask for the next: if
// it began without them, each would wait for two, and there would be twice as many.
func (l *Log) gather() {
	fsync := time.Duration(l.counts.lastSync.Load())
	began := l.o.Stopwatch()
	latest, before := began, 0
	for range moments {
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
		moment()
	}
}

// due reports whether an fsync should begin for n out of a crowd, the latest of whom
// came quiet ago, after it has been put off for waited. Seven eighths are enough: the
// others keep the event loops busy while it is in flight, and the next one has somebody
// to begin with. Nobody is waited for who has not come within the time of another fsync
// beside what it takes to answer all that are missing.
func due(n, crowd int, quiet, waited, fsync time.Duration) bool {
	if 8*n >= 7*crowd {
		return true
	}
	return quiet > fsync+time.Duration(crowd-n)*answerTime || waited > fsync+time.Duration(crowd)*answerTime
}
