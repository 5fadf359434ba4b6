package attach

import "github.com/cellserver/cellserver/limit"

// endings knows when keys end that a replica has. Nothing is recorded when a key expires
// here, but a replica of Redis deletes a key only when it is told to.
type endings struct {
	// due has names by the second in which they are to be looked at; filed those in it.
	due   map[int64][]name
	filed map[name]struct{}
	// next is the second that is looked at next.
	next int64
}

func newEndings(now limit.Instant) endings {
	return endings{due: map[int64][]name{}, filed: map[name]struct{}{}, next: second64(now)}
}

func second64(i limit.Instant) int64 { return int64(i) / 1e9 }

// file has a key looked at when it ends. One that is filed already stays where it is: it is
// filed again then.
func (e *endings) file(n name, at limit.Instant) {
	if _, is := e.filed[n]; is {
		return
	}
	e.filed[n] = struct{}{}
	// Rounded up, and never into a second that is over.
	s := max(second64(at)+1, e.next)
	e.due[s] = append(e.due[s], n)
}

// reach calls f for the keys that are to be looked at by now.
func (e *endings) reach(now limit.Instant, f func(n name)) {
	for ; e.next <= second64(now); e.next++ {
		for _, n := range e.due[e.next] {
			delete(e.filed, n)
			f(n)
		}
		delete(e.due, e.next)
	}
}
