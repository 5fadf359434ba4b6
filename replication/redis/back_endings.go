package redis

import "github.com/cellserver/cellserver/limit"

// endings knows when keys end that a replica has. Nothing is recorded when a key expires
// here, but a replica of Redis deletes a key only when it is told to.
type endings struct {
	databases map[int]*databaseEndings
	// next is the second that is looked at next.
	next int64
}

// databaseEndings is endings for one database. due has keys by the second in which they are to be
// looked at, and filed has that second.
type databaseEndings struct {
	due   map[int64]map[string]struct{}
	filed map[string]int64
}

func newEndings(now limit.Instant) endings {
	return endings{databases: map[int]*databaseEndings{}, next: second64(now)}
}

func second64(i limit.Instant) int64 { return int64(i) / 1e9 }

// file has a key looked at when it ends. One that is to be looked at earlier stays where it is:
// it is filed again then, so a limiter that is charged often costs nothing here.
func (e *endings) file(n name, at limit.Instant) {
	d := e.databases[n.db]
	if d == nil {
		d = &databaseEndings{due: map[int64]map[string]struct{}{}, filed: map[string]int64{}}
		e.databases[n.db] = d
	}
	// Rounded up, and never into a second that is over.
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

// strike forgets a key that does not end any more: what is kept is about keys that exist.
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

// strikeAll forgets the keys of a database.
func (e *endings) strikeAll(db int) { delete(e.databases, db) }

// reach calls f for the keys that are to be looked at by now.
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
