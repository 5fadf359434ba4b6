package replication

import (
	"sync"

	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/transport"
)

// latePump is the pump of a replica whose PSYNC is not answered yet.
type latePump struct {
	call protocol.PSync

	mu     sync.Mutex // guards what follows
	reply  []byte     // what is left to be sent of the answer
	pump   transport.Pump
	closed bool
}

// settle answers the call.
func (l *latePump) settle(reply []byte, p transport.Pump, err resp.Error) {
	l.mu.Lock()
	if err != "" {
		reply = append(append([]byte{'-'}, err...), '\r', '\n')
	}
	l.reply, l.pump = reply, p
	closed := l.closed
	l.mu.Unlock()
	if closed && p != nil {
		p.Closed()
	}
	l.call.Peer.Wake()
}

// Fill implements transport.Pump.
func (l *latePump) Fill(out []byte, most int) (filled []byte, more bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := min(len(l.reply), most); n > 0 {
		out, most, l.reply = append(out, l.reply[:n]...), most-n, l.reply[n:]
	}
	switch {
	case len(l.reply) > 0:
		return out, true, nil
	case l.pump == nil:
		return out, false, nil
	}
	return l.pump.Fill(out, most)
}

// Closed implements transport.Pump.
func (l *latePump) Closed() {
	l.mu.Lock()
	l.closed = true
	p := l.pump
	l.mu.Unlock()
	if p != nil {
		p.Closed()
	}
}
