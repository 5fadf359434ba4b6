package server

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cellserver/cellserver/attach"
	"github.com/cellserver/cellserver/commands/standby"
	"github.com/cellserver/cellserver/replication"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/session"
	"github.com/cellserver/cellserver/transport"
)

// foreign follows a Redis or Valkey for the node, and serves those that follow the node. It
// implements replication.Foreign and attach.Runner. The fields ctx, primary and address are set
// by the goroutine of the link, before the pulse of the follower reads address.
type foreign struct {
	*attach.Follower
	r *replicator
	// address is where the primary is that is followed.
	address string
	ctx     context.Context
	primary *session.Primary
	// unsent counts what replicas are not sent since a Redis has no equal of it.
	unsent attach.Tally
}

func newForeign(r *replicator) *foreign {
	f := &foreign{r: r}
	f.Follower = attach.New(attach.Options{
		Keyspace: r.s.keyspace, Runner: f, Dial: f.dialSecond, Log: r.s.log,
		Begin: func() error { return r.node.ForeignBegins() },
		Whole: func() error { return r.node.ForeignWhole() },
		Empty: func(related bool) error { return r.node.ForeignEmpty(related) },
		Round: func() { f.primary.Write() },
	})
	return f
}

// Follow implements replication.Foreign.
func (f *foreign) Follow(ctx context.Context, conn net.Conn, in *bufio.Reader, reply string) error {
	f.ctx, f.primary, f.address = ctx, f.r.s.engine.OpenPrimary(conn.RemoteAddr()), conn.RemoteAddr().String()
	defer func() {
		f.primary.Close()
		f.primary = nil
	}()
	return f.Follower.Follow(ctx, conn, in, reply) //nolint:wrapcheck // it says what it was about
}

// Run implements attach.Runner.
func (f *foreign) Run(db int, args [][]byte) error {
	return f.primary.Run(f.ctx, db, args) //nolint:wrapcheck // the reply of a command
}

// dialSecond opens a second connection to the primary, as the user of the first. The pulse of the
// follower calls it, while the link that address belongs to is there.
func (f *foreign) dialSecond(ctx context.Context) (net.Conn, error) {
	conn, err := f.r.dial(ctx, "tcp", f.address)
	if err != nil {
		return nil, err
	}
	c := f.r.s.config.Replication()
	conn = &impatient{conn, c.Timeout}
	if c.Password == "" {
		return conn, nil
	}
	words := []string{"AUTH", c.Password}
	if c.User != "" {
		words = []string{"AUTH", c.User, c.Password}
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err := login(conn, words); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// longestAnswer bounds what a primary may answer AUTH with.
const longestAnswer = 1 << 10

// login sends AUTH and reads the answer, and no byte more.
func login(conn net.Conn, words []string) error {
	if _, err := conn.Write(resp.AppendCommand(nil, words...)); err != nil {
		return fmt.Errorf("sending AUTH: %w", err)
	}
	var line [longestAnswer]byte
	for i := range line {
		if _, err := conn.Read(line[i : i+1]); err != nil {
			return fmt.Errorf("reading the answer to AUTH: %w", err)
		}
		if line[i] != '\n' {
			continue
		}
		if line[0] != '+' {
			return fmt.Errorf("the primary answered AUTH with %q", line[:i])
		}
		return nil
	}
	return errors.New("the answer to AUTH is too long")
}

// impatient is a connection that is closed when a read or write takes longer than most, if that
// is not 0.
type impatient struct {
	net.Conn
	most time.Duration
}

func (c *impatient) Read(p []byte) (int, error) {
	defer c.bound()()
	return c.Conn.Read(p)
}

func (c *impatient) Write(p []byte) (int, error) {
	defer c.bound()()
	return c.Conn.Write(p)
}

// bound begins to wait, and returns what ends that.
func (c *impatient) bound() func() {
	if c.most <= 0 {
		return func() {}
	}
	t := time.AfterFunc(c.most, func() { _ = c.Close() })
	return func() { t.Stop() }
}

// serve answers the PSYNC of a Redis or Valkey. It is sent everything whenever it comes, in a
// history of its own, since offsets count the bytes that it is sent.
func (f *foreign) serve(c standby.SyncCall) (reply []byte, p transport.Pump, err resp.Error) {
	var history [20]byte
	_, _ = rand.Read(history[:]) // it never fails
	p, failed := f.r.source.Admit(c, func(l replication.GuestStart) (replication.Guest, error) {
		o := attach.EncoderOptions{
			Keyspace: f.r.s.keyspace, Tail: l.Tail, From: l.From, Wake: l.Wake, Sleep: l.Sleep, Skipped: &f.unsent,
		}
		copy(o.Mark[:], rand.Text()+rand.Text())
		return attach.NewEncoder(o)
	})
	if failed != nil {
		f.r.s.log.Warn("a Redis cannot be served now", "addr", c.Addr, "error", failed)
		return nil, nil, "NOMASTERLINK Can't SYNC now"
	}
	return fmt.Appendf(nil, "+FULLRESYNC %x 0\r\n", history), p, ""
}

// fields are the lines of INFO replication about it, none if there never was a Redis.
func (f *foreign) fields() (fields []standby.Field) {
	add := func(name, value string) {
		fields = append(fields, standby.Field{Name: "cell_attach_" + name, Value: value})
	}
	id, offset, settled := f.Current()
	if figures := f.Figures(); id != "" || figures.Loaded+figures.Commands > 0 {
		attached, done := "0", "0"
		if id != "" {
			attached = "1"
		}
		if settled {
			done = "1"
		}
		add("attached", attached)
		add("replid", id)
		add("offset", strconv.FormatInt(offset, 10))
		add("settled", done)
		add("keys_loaded", strconv.FormatInt(figures.Loaded, 10))
		add("commands", strconv.FormatInt(figures.Commands, 10))
		add("keys_read", strconv.FormatInt(figures.Read, 10))
		add("keys_dirty", strconv.FormatInt(figures.Dirty, 10))
		add("skipped", tally(figures.Skipped))
	}
	if unsent := f.unsent.Counts(); len(unsent) > 0 {
		add("unsent", tally(unsent))
	}
	return fields
}

// tally writes counts as one line: "stream=2,xadd=5".
func tally(counts map[string]int64) string {
	clean := strings.NewReplacer(",", ";", "=", ":")
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, clean.Replace(name)+"="+strconv.FormatInt(counts[name], 10))
	}
	return strings.Join(parts, ",")
}

// nodeOf is a node whose INFO shows the Redis that is followed, too.
type nodeOf struct {
	*replication.Node
	foreign *foreign
}

// Info implements standby.Node.
func (n nodeOf) Info() []standby.Field { return append(n.Node.Info(), n.foreign.fields()...) }
