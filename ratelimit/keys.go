package ratelimit

import (
	"net/netip"

	"github.com/cellserver/cellserver/policy"
)

// keys is the buffer for the keys of states that the asks of a batch refer to. The first lasting
// bytes are in use until the batch ends. The bytes after them belong to one volatile call, such as a
// call of a script, and the next call overwrites them.
type keys struct {
	buf     []byte
	lasting int
	dropped bool // whether a buffer was dropped in this batch to which clauses may still refer
}

// maxKeys is the maximum size, in bytes, of the buffer that is kept after a batch. A batch that needs
// more gets another buffer; the first one lives as long as an ask refers to it.
const maxKeys = 64 << 10

// begin prepares the buffer for a call.
func (k *keys) begin(volatile bool) {
	switch {
	case len(k.buf) > maxKeys: // a transaction may have thousands of calls
		k.buf, k.lasting, k.dropped = nil, 0, true
	case volatile: // a script may make any number of calls, and the statistics copy its keys
		k.buf = k.buf[:k.lasting]
	}
}

// add returns the key of the state of clause i, counted from 0, of the policy of l or of its
// candidate. The key is valid until the batch ends or, for a volatile call, until the next call.
func (k *keys) add(l *Lookup, i int, candidate bool) []byte {
	if i == 0 && !candidate && l.StateKey != nil {
		return l.StateKey
	}
	from := len(k.buf)
	if k.buf = policy.AppendStateKey(k.buf, l.Policy, l.state(), i+1, candidate); !l.Volatile {
		k.lasting = len(k.buf)
	}
	return k.buf[from:len(k.buf):len(k.buf)]
}

// addNetwork returns the text of network, which is valid for as long as the keys that add returns.
func (k *keys) addNetwork(network netip.Prefix, volatile bool) []byte {
	from := len(k.buf)
	if k.buf = network.AppendTo(k.buf); !volatile {
		k.lasting = len(k.buf)
	}
	return k.buf[from:len(k.buf):len(k.buf)]
}

// endBatch ends the use of all keys. It reports whether a buffer was dropped because it was too large.
func (k *keys) endBatch() (dropped bool) {
	dropped, k.dropped, k.lasting = k.dropped, false, 0
	if k.buf = k.buf[:0]; cap(k.buf) > maxKeys {
		k.buf, dropped = nil, true
	}
	return dropped
}
