package attack

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Attack is one kind of harmful traffic.
type Attack struct {
	// Name identifies the attack on the command line and in tables.
	Name string
	// About describes in a sentence what the clients of the attack do.
	About string
	// CellOnly says that the attack applies only to cellserver: it needs cellserver's own
	// commands, or on another server it would harm the whole machine.
	CellOnly bool

	// maxMemory is the server's maxmemory in MiB, at small and at full size. options are further
	// options of the server.
	maxMemory [2]int
	options   []string
	// fill prepares the server before the attack and the measuring begin. nil prepares nothing.
	fill func(ctx context.Context, s *scene) error
	// run is the attack itself. Errors that its clients meet are counted and not returned: an error
	// means that the attack could not be carried out.
	run func(ctx context.Context, s *scene) error
}

// scene is a running attack: the server, the size, and the counters.
type scene struct {
	server *instance
	full   bool
	seed   uint64
	tally  tally
}

// tally counts what the clients of an attack met.
type tally struct {
	// served, refused and closed count the requests of clients that read their replies: answered
	// completely, answered with an error, and not answered because the server closed the
	// connection. late counts requests still waiting at the end of the attack.
	served, refused, closed, late atomic.Int64
	// replies and bytes count the replies to all clients.
	replies, bytes atomic.Int64
	// sippers counts clients that read slowly and were disconnected.
	sippers atomic.Int64

	mu sync.Mutex
	// errors counts error replies by their first word; guarded by mu.
	errors map[string]int64
	// notes are figures that only one attack has; guarded by mu.
	notes []string
}

// pick returns small or full, depending on the size of the attack.
func (s *scene) pick(small, full int) int {
	if s.full {
		return full
	}
	return small
}

// span returns the duration of a continuous attack.
func (s *scene) span() time.Duration {
	if s.full {
		return 10 * time.Second
	}
	return time.Second
}

// random returns the random number generator with index i of this attack.
func (s *scene) random(i int) *rand.Rand {
	return rand.New(rand.NewPCG(s.seed, uint64(i))) //nolint:gosec // an attack is to be repeatable
}

// note adds a figure, formatted by format and args, to the notes of the result.
func (s *scene) note(format string, args ...any) {
	s.tally.mu.Lock()
	defer s.tally.mu.Unlock()
	s.tally.notes = append(s.tally.notes, fmt.Sprintf(format, args...))
}

// count adds a reply to any client to the counts of replies, of bytes and of errors.
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

// judge counts the outcome of a request from a client that waits for its replies and reads them as
// fast as it can. After an error the request counts as late if ctx has ended, and otherwise as
// closed.
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

// ask sends a command on c, a client that reads its replies, waits for the reply and counts the
// outcome. An error reply is not returned as an error.
func (s *scene) ask(ctx context.Context, c *client, words ...string) error {
	r, err := c.do(words...)
	s.judge(ctx, &r, err)
	if err == nil {
		s.count(&r)
	}
	return err
}

// crowd runs n clients at once, each on a connection of its own, and waits for them. A client that
// cannot connect counts as closed.
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
		_ = c.flush() // an error means that the server has closed the connection
		<-ctx.Done()
	})
}

// during returns a context that ends after the span of the attack.
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
