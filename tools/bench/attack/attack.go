package attack

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Attack is one kind of traffic that does harm.
type Attack struct {
	// Name is a word for the command line and for tables.
	Name string
	// About says in a sentence what its clients do.
	About string
	// CellOnly says that only cellserver can be attacked so: the commands are its own,
	// or the harm to another server would be the machine's.
	CellOnly bool

	// maxMemory is the bound that the server is given, at small and at full size, in
	// MiB; options are what it is given beside that.
	maxMemory [2]int
	options   []string
	// fill prepares the server, before anybody looks; nil prepares nothing.
	fill func(ctx context.Context, s *scene) error
	// run is the attack itself. What its clients meet is counted, and is no error:
	// an error says that the attack could not be carried out.
	run func(ctx context.Context, s *scene) error
}

// scene is an attack under way: the server, the size, and what is counted.
type scene struct {
	server *instance
	full   bool
	seed   uint64
	tally  tally
}

// tally counts what the clients of an attack met.
type tally struct {
	// served, refused and closed count the good readers' requests: answered whole,
	// answered with an error, and not answered because the server closed the
	// connection. late are those that were still waiting at the attack's end.
	served, refused, closed, late atomic.Int64
	// replies and bytes count what came back to all clients.
	replies, bytes atomic.Int64
	// sippers counts clients that read slowly and were cut off.
	sippers atomic.Int64

	mu sync.Mutex
	// errors has each error reply's first word with its number; guarded by mu.
	errors map[string]int64
	// notes are figures that one attack alone has; guarded by mu.
	notes []string
}

// pick returns one of two numbers by the size of the attack.
func (s *scene) pick(small, full int) int {
	if s.full {
		return full
	}
	return small
}

// span returns how long a steady attack lasts.
func (s *scene) span() time.Duration {
	if s.full {
		return 10 * time.Second
	}
	return time.Second
}

// random returns the i-th source of random numbers of this attack.
func (s *scene) random(i int) *rand.Rand {
	return rand.New(rand.NewPCG(s.seed, uint64(i))) //nolint:gosec // an attack is to be repeatable
}

// note adds a figure to the result.
func (s *scene) note(format string, args ...any) {
	s.tally.mu.Lock()
	defer s.tally.mu.Unlock()
	s.tally.notes = append(s.tally.notes, fmt.Sprintf(format, args...))
}

// count adds a reply of any client.
func (s *scene) count(r *reply) {
	s.tally.replies.Add(1)
	s.tally.bytes.Add(r.bytes)
	if !r.refused() {
		return
	}
	s.tally.mu.Lock()
	defer s.tally.mu.Unlock()
	if s.tally.errors == nil {
		s.tally.errors = make(map[string]int64)
	}
	s.tally.errors[firstWord(r.err)] += r.errors
}

// judge counts what became of a good reader's request: one that waits for its replies
// and reads them as fast as it can.
func (s *scene) judge(ctx context.Context, r *reply, err error) {
	switch {
	case err == nil && r.refused():
		s.tally.refused.Add(1)
	case err == nil:
		s.tally.served.Add(1)
	case ctx.Err() != nil:
		s.tally.late.Add(1)
	default:
		s.tally.closed.Add(1)
	}
}

// ask has a good reader do one command, and counts what became of it.
func (s *scene) ask(ctx context.Context, c *client, words ...string) error {
	r, err := c.do(words...)
	s.judge(ctx, &r, err)
	if err == nil {
		s.count(&r)
	}
	return err
}

// crowd runs n clients at once, each on a connection of its own, and waits for them. A
// client that cannot connect counts as closed.
func (s *scene) crowd(ctx context.Context, n int, each func(ctx context.Context, i int, c *client)) {
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() {
			c, err := dial(ctx, s.server.address)
			if err != nil {
				s.judge(ctx, nil, err)
				return
			}
			defer c.close()
			each(ctx, i, c)
		})
	}
	wait.Wait()
}

// mute runs n clients that send what say appends, and read nothing until ctx ends.
func (s *scene) mute(ctx context.Context, n int, say func(b []byte) []byte) {
	s.crowd(ctx, n, func(ctx context.Context, _ int, c *client) {
		c.out = say(c.out)
		_ = c.flush() // a server that closes it may
		<-ctx.Done()
	})
}

// during ends what steadily goes on after the span of the attack.
func (s *scene) during(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.span())
}

func firstWord(text string) string {
	for i := range len(text) {
		if text[i] == ' ' {
			return text[:i]
		}
	}
	return text
}
