package acl_test

import (
	"slices"
	"strings"

	"github.com/cellserver/cellserver/acl"
)

// words is a vocabulary of a few commands: name, subcommands and categories each.
type words struct {
	names      []string
	categories map[string][]int
}

func testWords() *words {
	w := &words{categories: map[string][]int{}}
	for _, entry := range []string{
		"get read string", "set write string", "del write keyspace", "select connection", "ping connection",
		"config admin", "config|get admin", "config|set admin", "acl admin", "acl|whoami slow", "publish pubsub", "cl.throttle",
	} {
		fields := strings.Fields(entry)
		for _, c := range fields[1:] {
			w.categories[c] = append(w.categories[c], len(w.names))
		}
		w.names = append(w.names, fields[0])
	}
	return w
}

func (w *words) Commands() int { return len(w.names) }

func (w *words) Command(name string) (int, bool) {
	id := slices.Index(w.names, name)
	return id, id >= 0
}

func (w *words) Subcommands(id int) (ids []int) {
	for i, name := range w.names {
		if strings.HasPrefix(name, w.names[id]+"|") {
			ids = append(ids, i)
		}
	}
	return ids
}

func (w *words) Category(name string) ([]int, bool) {
	ids, ok := w.categories[name]
	return ids, ok
}

// rulesOf returns the rules of a new user after some rules were applied.
func rulesOf(us *acl.Users, said ...string) (*acl.Rules, error) {
	u, _, err := us.Set("somebody", append([]string{"reset"}, said...))
	if err != nil {
		return nil, err
	}
	return u.Rules(), nil
}
