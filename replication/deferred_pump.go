package replication

import (
	"sync"

	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// deferredPump is the pump of a replica whose PSYNC has not been answered yet. After settle, it
// sends the answer and then forwards each call to the pump that settle was given.
type deferredPump struct {
	call protocol.PSync

	mu     sync.Mutex // mu guards the fields below
	reply  []byte     // the part of the answer that is not sent yet
	pump   transport.Pump
	closed bool
}

// settle gives the answer to PSYNC: the error reply err, or reply if err is "". It wakes the
// replica's connection. p sends the stream after the answer; p is nil if no stream follows. If the
// connection has been closed, settle closes p.
func (d *deferredPump) settle(reply []byte, p transport.Pump, err resp.Error) {
	d.mu.Lock()
	if err != "" {
		reply = append(append([]byte{'-'}, err...), '\r', '\n')
	}
	d.reply, d.pump = reply, p
	closed := d.closed
	d.mu.Unlock()
	if closed && p != nil {
		p.Closed()
	}
	d.call.Peer.Wake()
}

// Fill implements [transport.Pump]: it appends the answer to out, and then the output of the pump
// from settle, limit bytes at most. more says that more can be sent now.
func (d *deferredPump) Fill(out []byte, limit int) (filled []byte, more bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := min(len(d.reply), limit); n > 0 {
		out, limit, d.reply = append(out, d.reply[:n]...), limit-n, d.reply[n:]
	}
	switch {
	case len(d.reply) > 0:
		return out, true, nil
	case d.pump == nil:
		return out, false, nil
	}
	return d.pump.Fill(out, limit)
}

// Closed implements [transport.Pump].
func (d *deferredPump) Closed() {
	d.mu.Lock()
	d.closed = true
	p := d.pump
	d.mu.Unlock()
	if p != nil {
		p.Closed()
	}
}
