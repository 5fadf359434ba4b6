package engine

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Confirmed is the result of [Engine.Confirm].
type Confirmed struct {
	// Reply is the reply of the script: see [Engine.Eval].
	Reply any
	// Replicas is the number of replicas that are connected to the node, and Have the number of those that have
	// confirmed the writes of the node.
	Replicas, Have int
}

// Confirm runs a script as [Engine.Eval] does, on a connection that no other request uses meanwhile, and then waits
// until a replica of the node has confirmed the writes of the script and all earlier writes of the node. It waits for d
// at most, and not at all if no replica is connected. The script must write. If it writes nothing, replicas confirm at
// once. An err is an [*Error], also if only the replicas could not be asked: the script may have run then.
func (e *Engine) Confirm(ctx context.Context, script string, keys, args []string, d time.Duration) (Confirmed, error) {
	c := newCall(e.o.Prefix, script, keys, args)
	c.slot, c.confirm = e.Slot([]byte(keys[0])), &confirmation{most: d}
	defer c.confirm.end()
	ctx, cancel := context.WithTimeout(ctx, controlTimeout+d)
	defer cancel()
	reply, why := e.call(ctx, c)
	if why != nil {
		return Confirmed{}, why
	}
	is := Confirmed{Reply: reply}
	if is.Replicas, is.Have, why = c.confirm.replicas(ctx); why != nil {
		return Confirmed{}, why
	}
	return is, nil
}

// confirmation waits for the replicas of a node, on a connection of its own. WAIT is about the latest write of its
// connection, and nothing else is done there until it ends.
type confirmation struct {
	most time.Duration
	node *node
	conn *redis.Conn
	info *redis.StringCmd
	wait *redis.IntCmd // the WAIT that was sent with the script; nil if there was none
}

// pipeline returns a pipeline on a connection to the node n, which it takes from the pool of n.
func (c *confirmation) pipeline(n *node) redis.Pipeliner {
	c.end()
	c.node, c.conn = n, n.calls.Conn()
	return c.conn.Pipeline()
}

// add adds to pipe, after the script, the command that returns the number of replicas. If the latest number was not 0,
// it also adds the wait for one replica, which saves a round trip.
func (c *confirmation) add(ctx context.Context, pipe redis.Pipeliner, n *node) {
	c.info, c.wait = redis.NewStringCmd(ctx, "info", "replication"), nil
	_ = pipe.Process(ctx, c.info)
	if n.replicas.Load() > 0 {
		c.wait = c.newWait(ctx)
		_ = pipe.Process(ctx, c.wait)
	}
}

func (c *confirmation) newWait(ctx context.Context) *redis.IntCmd {
	return redis.NewIntCmd(ctx, "wait", 1, c.most.Milliseconds())
}

// replicas returns the number of replicas of the node that has run the script, and the number of those that have
// confirmed it. It waits for one replica if add has not added the wait.
func (c *confirmation) replicas(ctx context.Context) (all, have int, why *Error) {
	if err := c.info.Err(); err != nil {
		return 0, 0, errorOf(err)
	}
	all = replicasIn(c.info.Val())
	c.node.replicas.Store(int64(all))
	if all == 0 {
		return 0, 0, nil
	}
	if c.wait == nil {
		c.wait = c.newWait(ctx)
		if err := process(ctx, c.conn, c.wait); err != nil {
			return all, 0, errorOf(err)
		}
	}
	if err := c.wait.Err(); err != nil {
		return all, 0, errorOf(err)
	}
	return all, int(c.wait.Val()), nil
}

// process sends cmd. If the client library panics, which it does on malformed replies, process returns an error.
func process(ctx context.Context, conn *redis.Conn, cmd redis.Cmder) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errReply, p)
		}
	}()
	return conn.Process(ctx, cmd)
}

// end gives the connection back.
func (c *confirmation) end() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

var connectedReplicas = regexp.MustCompile(`(?m)^connected_slaves:(\d+)\r?$`)

// replicasIn returns the number of replicas in info, the reply to INFO of a node: 0 if there is none.
func replicasIn(info string) int {
	found := connectedReplicas.FindStringSubmatch(info)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(found[1])
	return n
}
