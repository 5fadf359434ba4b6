package records_test

import (
	"context"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/cellserver/cellserver/internal/remotedouble"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote/engine"
	"github.com/cellserver/cellserver/remote/records"
)

const (
	head = "{policies}:head"
	log  = "{policies}:log"
)

// link is the connection of a server to the model, with faults.
type link struct {
	m   **remotedouble.Records
	rng *rand.Rand
	// faults is the share of requests that fail, in percent.
	faults int
	// before, if not nil, is called before each request, and next, if not nil, says once what the next
	// request does.
	before func()
	next   []fate
	late   *[]func() // requests that were sent and will be done later
	calls  int
	busy   bool // a request is in progress, and before is called
}

// fate is what becomes of a request.
type fate uint8

const (
	answered fate = iota
	refused       // not done, which the server knows
	lost          // not done, which the server does not know
	done          // done, but the reply is lost
	delayed       // done later, and the reply is lost
	fates
)

func (l *link) Eval(_ context.Context, script string, keys, args []string) (any, error) {
	l.calls++
	if l.before != nil {
		l.before()
	}
	f := answered
	switch {
	case len(l.next) > 0:
		f, l.next = l.next[0], l.next[1:]
	case l.faults > 0 && l.rng.IntN(100) < l.faults:
		f = refused + fate(l.rng.IntN(int(fates-refused)))
	}
	unknown := &engine.Error{Reason: engine.Timeout}
	switch f {
	case refused:
		return nil, &engine.Error{Reason: engine.Starting, NotDone: true}
	case lost:
		return nil, unknown
	case delayed:
		*l.late = append(*l.late, func() { (*l.m).Run(script, keys, args) })
		return nil, unknown
	case done:
		(*l.m).Run(script, keys, args)
		return nil, unknown
	}
	return (*l.m).Run(script, keys, args), nil
}

func (l *link) Confirm(ctx context.Context, script string, keys, args []string, d time.Duration) (engine.Confirmed, error) {
	reply, err := l.Eval(ctx, script, keys, args)
	if err != nil {
		return engine.Confirmed{}, err
	}
	return (*l.m).Replicas.Confirm(ctx, reply, d)
}

func (l *link) Listen(ctx context.Context, channel string, heard func(err error)) {
	(*l.m).Channel.Listen(ctx, channel, heard)
}

// table is an observer: the records that a server has in force.
type table struct {
	records map[string]string
	all     int // the number of ObserveAll
}

func (t *table) ObserveChange(pairs iter.Seq2[[]byte, []byte]) {
	for key, value := range pairs {
		if len(value) == 0 {
			delete(t.records, string(key))
			continue
		}
		t.records[string(key)] = string(value)
	}
}

func (t *table) ObserveAll(pairs iter.Seq2[[]byte, []byte]) {
	t.all++
	t.records = map[string]string{}
	for key, value := range pairs {
		t.records[string(key)] = string(value)
	}
}

// take takes over a change of the server itself.
func (t *table) take(pairs [][]byte) {
	for i := 0; i < len(pairs); i += 2 {
		if len(pairs[i+1]) == 0 {
			delete(t.records, string(pairs[i]))
			continue
		}
		t.records[string(pairs[i])] = string(pairs[i+1])
	}
}

// server is a store with its table and its link.
type server struct {
	*records.Store
	*table
	*link
}

func newServer(m **remotedouble.Records, late *[]func(), rng *rand.Rand) *server {
	s := &server{table: &table{records: map[string]string{}}, link: &link{m: m, rng: rng, late: late}}
	s.Store = records.New(records.Options{
		Engine: s.link, Observer: s.table, Now: func() limit.Instant { return limit.Instant((*m).Now) }, ID: rng.Uint64,
	})
	return s
}

// write refreshes, and writes pairs of words.
func (s *server) write(words ...string) error {
	if _, err := s.Refresh(); err != nil {
		return err
	}
	return s.set(words...)
}

// set writes pairs of words.
func (s *server) set(words ...string) error {
	var pairs [][]byte
	for _, w := range words {
		pairs = append(pairs, []byte(w))
	}
	err := s.SetStrings(pairs, 0)
	if err == nil {
		s.take(pairs)
	}
	return err
}
