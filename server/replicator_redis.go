package server

import (
	"bufio"
	"context"
	"net"

	"github.com/cellserver/cellserver/replication"
	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/replication/redis"
	"github.com/cellserver/cellserver/session"
)

// redisLink runs the commands of the Redis or Valkey that the node follows, in a session of its
// own. It implements replication.RedisFollower and redis.Runner. The goroutine of the link sets
// ctx, primary and address before it starts the goroutine that calls dialSecond.
type redisLink struct {
	*redis.Follower
	r *replicator
	// address is the network address of the primary.
	address string
	ctx     context.Context
	primary *session.Primary
}

func newRedisLink(r *replicator) *redisLink {
	l := &redisLink{r: r}
	l.Follower = redis.New(redis.Options{
		Keyspace: r.s.keyspace, Runner: l, Dial: l.dialSecond, Log: r.s.log,
		Begin: func() error { return r.node.RedisBegins() },
		Whole: func() error { return r.node.RedisWhole() },
		Empty: func(related bool) error { return r.node.RedisEmpty(related) },
		Round: func() { l.primary.Write() },
	})
	return l
}

// Follow implements replication.RedisFollower.
func (l *redisLink) Follow(ctx context.Context, conn net.Conn, in *bufio.Reader, reply string) error {
	l.ctx, l.primary, l.address = ctx, l.r.s.engine.OpenPrimary(conn.RemoteAddr()), conn.RemoteAddr().String()
	defer func() {
		l.primary.Close()
		l.primary = nil
	}()
	return l.Follower.Follow(ctx, conn, in, reply) //nolint:wrapcheck // the error says what failed
}

// Run implements redis.Runner. It runs a command of the primary in the database db.
func (l *redisLink) Run(db int, args [][]byte) error {
	return l.primary.Run(l.ctx, db, args) //nolint:wrapcheck // the error is the error reply of the command
}

// dialSecond opens a second connection to the primary and authenticates it with the configured user
// and password. It must be called only while the link to the primary is open.
func (l *redisLink) dialSecond(ctx context.Context) (net.Conn, error) {
	conn, err := l.r.dial(ctx, "tcp", l.address)
	if err != nil {
		return nil, err
	}
	c := l.r.s.config.Replication()
	return redis.Authenticate(ctx, conn, c.User, c.Password, c.Timeout) //nolint:wrapcheck // the error says what failed
}

// nodeWithRedis is a node whose INFO also shows the Redis that it follows, and the data that could
// not be sent to those of its replicas that are a Redis.
type nodeWithRedis struct {
	*replication.Node
	link     *redisLink
	replicas *redis.Replicas
}

// Info implements env.Node.
func (n nodeWithRedis) Info() []protocol.Field {
	return append(append(n.Node.Info(), n.link.Info()...), n.replicas.Info()...)
}
