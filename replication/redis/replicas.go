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

// Replicas serves each Redis and Valkey that replicates from a keyspace. All fields must be set.
type Replicas struct {
	Keyspace *keyspace.Keyspace
	Source   *replication.Source
	Log      *slog.Logger

	unsent Tally // counts values and commands that Redis has no equivalent of
}

// Serve answers the PSYNC of a Redis or Valkey. Each connection gets a full resynchronization
// with a new history, because its offsets count the bytes that this replica is sent.
func (r *Replicas) Serve(c protocol.PSync) (reply []byte, p transport.Pump, err resp.Error) {
	var history [20]byte
	_, _ = rand.Read(history[:]) // it never fails
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
