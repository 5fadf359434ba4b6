package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace"
)

// Period is the interval at which dirty keys are read.
const Period = 50 * time.Millisecond

// ackPeriods is the number of periods after which an unchanged offset is acknowledged again.
// Redis begins to stream after a diskless RDB only when it receives an acknowledgement that was
// sent after its child process has ended.
const ackPeriods = 20

// pulse is the second goroutine of a link. It reads dirty keys and acknowledges offsets, while the
// goroutine of Follow applies the stream.
type pulse struct {
	link     net.Conn
	keyTable *keyTable
	ks       *keyspace.Keyspace
	dial     func(ctx context.Context) (net.Conn, error)
	values   *values // converts the values that were read; its store is pulse.take
	// kick makes run read dirty keys and acknowledge at once. count is the number of keys that were
	// read.
	kick    <-chan struct{}
	count   *atomic.Int64
	storing *sync.Mutex // the lock that [view] describes under this name
	// second is the second connection to the primary. It is nil until there is a dirty key.
	second *second
	view   view
	pace   pace
	// at is the key that is being read. stored says that its value could be stored on this
	// server.
	at     name
	stored bool
}

// run reads dirty keys and acknowledges until ctx ends or a connection fails. It returns the
// reason, which is never nil.
func (p *pulse) run(ctx context.Context) error {
	handle := p.ks.NewHandle()
	defer handle.Close()
	p.view = view{ctx: ctx, handle: handle, storing: p.storing}
	tick := time.NewTicker(Period)
	defer tick.Stop()
	acked, periods := int64(-1), 0
	for {
		if err := p.readDue(ctx); err != nil {
			return err
		}
		p.keyTable.forget()
		if _, stored := p.keyTable.at(); stored != acked || periods >= ackPeriods {
			if _, err := p.link.Write(appendAck(nil, stored)); err != nil {
				return err
			}
			acked, periods = stored, 0
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			periods++
		case <-p.kick:
			periods = ackPeriods
			p.pace.reset()
		}
	}
}

// readDue reads the keys that are dirty now, unless the pace requires a pause.
func (p *pulse) readDue(ctx context.Context) error {
	if !p.pace.due(p.ks.Clock().Now()) {
		return nil
	}
	err := p.readAll(ctx)
	if p.second != nil {
		p.pace.read(p.second.dumped, p.ks.Clock().Now())
		p.second.dumped = 0
	}
	return err
}

// appendAck appends the command REPLCONF ACK for offset to out.
func appendAck(out []byte, offset int64) []byte {
	return appendCommand(out, "REPLCONF", "ACK", fmt.Sprint(offset))
}

// readAll reads the keys that are dirty now, each once, and stores them. After an error, the keys
// that were not stored are queued again.
func (p *pulse) readAll(ctx context.Context) error {
	for left := p.keyTable.waiting(); left > 0; left -= batchKeys {
		batch := p.keyTable.take(min(left, batchKeys))
		if len(batch) == 0 {
			return nil
		}
		done, err := p.readBatch(ctx, batch)
		if err != nil {
			p.keyTable.requeue(batch[done:])
			return fmt.Errorf("reading keys of the primary: %w", err)
		}
	}
	return nil
}

// readBatch reads the keys in batch and stores them. done is the number of keys that it has
// stored.
func (p *pulse) readBatch(ctx context.Context, batch []name) (done int, err error) {
	if err := p.connect(ctx); err != nil {
		return 0, err
	}
	err = p.second.read(batch, func(n name, at int64, read func() (bool, error)) error {
		if err := p.store(n, at, read); err != nil {
			return err
		}
		done++
		return nil
	})
	return done, err
}

// connect opens the second connection, unless it is open. When ctx ends, the connection is closed.
func (p *pulse) connect(ctx context.Context) error {
	if p.second != nil {
		return nil
	}
	conn, err := p.dial(ctx)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	p.second, err = newSecond(conn, p.values)
	if err != nil {
		stop()
		p.second = nil
		return errors.Join(err, conn.Close())
	}
	return nil
}

// take stores e as the value of the key p.at, which is being read.
func (p *pulse) take(_ int, _ []byte, e entry.Entry) error {
	p.stored = true
	return p.view.put(p.at, e)
}

// store stores the value of the key n, and records that it was read at the offset at. read decodes
// the value and passes it to take. If the key does not exist on the primary, or this server cannot
// store the value, store removes the key.
func (p *pulse) store(n name, at int64, read func() (found bool, err error)) error {
	p.view.storing.Lock()
	defer p.view.storing.Unlock()
	p.at, p.stored = n, false
	_, err := read()
	if err != nil {
		return err
	}
	if !p.stored && n.db < p.ks.Databases() && n.db >= 0 && len(n.key) <= longestKey {
		if err := p.view.remove(n); err != nil {
			return err
		}
	}
	p.count.Add(1)
	p.keyTable.stored(n, at)
	return nil
}

func (p *pulse) close() {
	if p.second != nil {
		_ = p.second.conn.Close()
	}
}
