package redis

import "github.com/cellserver/cellserver/limit"

// endings has the times at which keys of a replica expire. It is needed because this server
// records nothing when a key expires, but a Redis replica deletes a key only when its primary
// sends a DEL.
type endings struct {
	databases map[int]*databaseEndings
	// next is the next second of the clock to be processed.
	next int64
}

// databaseEndings has the endings of one database. due has the keys by the second in which they are
// to be checked. filed has the same second for each key.
type databaseEndings struct {
	due   map[int64]map[string]struct{}
	filed map[string]int64
}

// newEndings returns endings without keys, as of the instant now.
func newEndings(now limit.Instant) endings {
	return endings{databases: map[int]*databaseEndings{}, next: second64(now)}
}

// second64 returns i in seconds, rounded down.
func second64(i limit.Instant) int64 { return int64(i) / 1e9 }

// file schedules a check of the key n at its expiry at. If an earlier check of the key is scheduled
// already, file does nothing: after that check the key is filed again. So a limiter whose expiry
// moves with each charge costs nothing here.
func (e *endings) file(n name, at limit.Instant) {
	d := e.databases[n.db]
	if d == nil {
		d = &databaseEndings{due: map[int64]map[string]struct{}{}, filed: map[string]int64{}}
		e.databases[n.db] = d
	}
	// s is rounded up, and is always after the seconds that were processed.
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

func (e *endings) strikeAll(db int) { delete(e.databases, db) }

// reach removes the keys whose check is due at the instant now, and calls f for each.
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
