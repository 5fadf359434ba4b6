package redis

import "github.com/cellserver/cellserver/limit"

// endings knows when the keys of a replica expire. This server records nothing when a key
// expires, but a Redis replica deletes a key only when its primary sends a DEL.
type endings struct {
	databases map[int]*databaseEndings
	// next is the next second to be processed.
	next int64
}

// databaseEndings are the endings of one database. due has the keys by the second in which they
// are to be checked. filed has that second by key.
type databaseEndings struct {
	due   map[int64]map[string]struct{}
	filed map[string]int64
}

func newEndings(now limit.Instant) endings {
	return endings{databases: map[int]*databaseEndings{}, next: second64(now)}
}

func second64(i limit.Instant) int64 { return int64(i) / 1e9 }

// file schedules a check of a key at its expiry. A key with an earlier check keeps that, and is
// filed again then. So a limiter that is charged often costs nothing here.
func (e *endings) file(n name, at limit.Instant) {
	d := e.databases[n.db]
	if d == nil {
		d = &databaseEndings{due: map[int64]map[string]struct{}{}, filed: map[string]int64{}}
		e.databases[n.db] = d
	}
	// Rounded up, and never into a second that was already processed.
	s := max(second64(at)+1, e.next)
	if was, is := d.filed[n.key]; is && was <= s {
		return
	}
	d.strike(n.key)
	d.filed[n.key] = s
	if d.due[s] == nil {
		d.due[s] = map[string]struct{}{}
	}
	d.due[s][n.key] = struct{}{}
}

// strike removes a key that was deleted or no longer expires, so that only existing keys take
// memory.
func (e *endings) strike(n name) {
	if d := e.databases[n.db]; d != nil {
		d.strike(n.key)
	}
}

func (d *databaseEndings) strike(key string) {
	s, is := d.filed[key]
	if !is {
		return
	}
	delete(d.filed, key)
	if delete(d.due[s], key); len(d.due[s]) == 0 {
		delete(d.due, s)
	}
}

// strikeAll removes all keys of a database.
func (e *endings) strikeAll(db int) { delete(e.databases, db) }

// reach calls f for the keys whose check is due at now, and removes them.
func (e *endings) reach(now limit.Instant, f func(n name)) {
	for ; e.next <= second64(now); e.next++ {
		for db, d := range e.databases {
			for key := range d.due[e.next] {
				delete(d.filed, key)
				f(name{db, key})
			}
			delete(d.due, e.next)
		}
	}
}
