package redis

import (
	"crypto/rand"
	"fmt"
	"log/slog"

	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/replication"
	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// Replicas serves each Redis and Valkey that replicates from a keyspace. All exported fields must
// be set. Any goroutine may call its methods.
type Replicas struct {
	Keyspace *keyspace.Keyspace
	Source   *replication.Source
	Log      *slog.Logger

	unsent Tally // counts the values and commands for which Redis has no equivalent
}

// Serve answers c, the PSYNC of a Redis or Valkey. p sends the RDB and the commands after reply. If
// err is not "", the replica is refused and tries again later. Each connection gets a full
// resynchronization with a new history, because an offset counts the bytes that were sent over that
// connection.
func (r *Replicas) Serve(c protocol.PSync) (reply []byte, p transport.Pump, err resp.Error) {
	var history [20]byte
	_, _ = rand.Read(history[:]) // Read never fails, as its documentation says
	p, failed := r.Source.ServeRedis(c, func(start replication.EncoderStart) (replication.Encoder, error) {
		o := EncoderOptions{
			Keyspace: r.Keyspace, Tail: start.Tail, From: start.From, Wake: start.Wake, Sleep: start.Sleep, Skipped: &r.unsent,
		}
		copy(o.Mark[:], rand.Text()+rand.Text())
		return NewEncoder(o)
	})
	if failed != nil {
		r.Log.Warn("PSYNC of a Redis or Valkey refused", "addr", c.Addr, "error", failed)
		return nil, nil, "NOMASTERLINK Can't SYNC now"
	}
	return fmt.Appendf(nil, "+FULLRESYNC %x 0\r\n", history), p, ""
}
