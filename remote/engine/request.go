package engine

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"sync"
	"time"
	"unsafe"

	"github.com/redis/go-redis/v9"
)

// script is a script of the engine: its text, and the SHA-1 digest by which the node knows it.
type script struct{ text, sha any }

func newScript(text string) *script {
	sum := sha1.Sum([]byte(text))
	return &script{text: text, sha: hex.EncodeToString(sum[:])}
}

// swapOne compares and sets one key. swapSeveral compares and sets several keys of one slot.
var (
	swapOne     = newScript(swapScript)
	swapSeveral = newScript(swapAllScript)
)

// word is an argument of a command. sent records that the client library has encoded the argument.
// If it has not, the command was certainly not sent.
type word struct {
	b    []byte
	sent bool
}

// MarshalBinary returns the bytes. The client library calls it when it encodes the command.
func (w *word) MarshalBinary() ([]byte, error) {
	w.sent = true
	return w.b, nil
}

// request is one command that waits for a node or was sent to one. Only one goroutine at a time
// uses it.
type request struct {
	at      time.Duration // the time at which the request was submitted
	slot    int
	size    int    // approximate number of bytes to write
	tries   uint8  // number of times that the request was sent again, to the same or another node
	asking  bool   // ASKING has to be sent first, because the next node is still importing the slot
	eval    bool   // the text of the script has to be sent, because the node does not have it
	refusal *Error // the error, if the request is answered without being sent to a node; otherwise nil

	key, tag, value word
	keep            int64
	last            int64 // index of the last byte of the value to read
	get             *redis.StringCmd
	swap            *redis.Cmd
	args            [7]any // the arguments of the swap script
	script          *script
	cmd             redis.Cmder // the command that is in use for the request

	onGet  func(raw []byte, err error)
	onSwap func(applied bool, now []byte, err error)
	onAll  func(applied bool, now [][]byte, err error)
	keys   int // number of keys, for onAll
}

var requests = sync.Pool{New: func() any {
	r := &request{}
	ctx := context.Background()
	r.get = redis.NewStringCmd(ctx, "getrange", &r.key, 0, &r.last)
	r.args = [7]any{"evalsha", swapOne.sha, 1, &r.key, &r.tag, &r.value, &r.keep}
	r.swap = redis.NewCmd(ctx, r.args[:]...)
	return r
}}

// newRequest returns a request from the pool, for key in slot.
func newRequest(prefix string, key []byte, slot int) *request {
	r := requests.Get().(*request)
	r.key.b = append(append(r.key.b[:0], prefix...), key...)
	r.slot, r.size = slot, len(r.key.b)
	return r
}

// newGet returns a request for the value of key. Of a value that is longer than most bytes, only
// most+1 bytes are read: reading all of a long value would delay other requests.
func newGet(prefix string, key []byte, slot, most int, done func([]byte, error)) *request {
	r := newRequest(prefix, key, slot)
	r.last = int64(most)
	r.cmd, r.onGet = r.get, done
	return r
}

// newSwap returns a request for the compare-and-set w.
func newSwap(prefix string, w Write, slot int, done func(bool, []byte, error)) *request {
	r := newRequest(prefix, w.Key, slot)
	r.tag.b, r.value.b, r.keep = tagOf(w.Old), w.New, milliseconds(w.Keep)
	r.size += len(w.New)
	r.cmd, r.script, r.onSwap = r.swap, swapOne, done
	return r
}

// newSwapAll returns a request for the writes ws to several keys of one slot. It allocates memory
// each time, because such requests are rare.
func newSwapAll(prefix string, ws []Write, slot int, done func(bool, [][]byte, error)) *request {
	r := newRequest(prefix, ws[0].Key, slot)
	words := make([]word, 3*len(ws))
	args := make([]any, 3, 3+4*len(ws))
	args[0], args[1], args[2] = "evalsha", swapSeveral.sha, len(ws)
	for i, w := range ws {
		words[3*i].b = append([]byte(prefix), w.Key...)
		if i == 0 {
			args = append(args, &r.key)
			continue
		}
		args = append(args, &words[3*i])
	}
	for i, w := range ws {
		tag, value := &words[3*i+1], &words[3*i+2]
		tag.b, value.b = tagOf(w.Old), w.New
		args = append(args, tag, value, milliseconds(w.Keep))
		r.size += len(w.Key) + len(w.New)
	}
	r.cmd, r.script, r.onAll, r.keys = redis.NewCmd(context.Background(), args...), swapSeveral, done, len(ws)
	return r
}

// tagOf returns the bytes of value that a swap compares.
func tagOf(value []byte) []byte { return value[:min(TagLen, len(value))] }

// milliseconds returns d in milliseconds, at least 1. It rounds up, because a limit whose value
// expires too early is forgotten.
func milliseconds(d time.Duration) int64 {
	return max(1, int64((d+time.Millisecond-1)/time.Millisecond))
}

// command returns the command to send, and resets the results of an earlier try.
func (r *request) command() redis.Cmder {
	r.key.sent = false
	r.cmd.SetErr(nil)
	if r.script != nil {
		args := r.cmd.Args()
		if args[0], args[1] = "evalsha", r.script.sha; r.eval {
			args[0], args[1] = "eval", r.script.text
		}
	}
	return r.cmd
}

// writes reports whether the request is a swap, so that its outcome matters.
func (r *request) writes() bool { return r.script != nil }

// fail recycles the request and answers it with the error e.
func (r *request) fail(e *Error) {
	get, swap, all := r.onGet, r.onSwap, r.onAll
	r.free()
	switch {
	case get != nil:
		get(nil, e)
	case swap != nil:
		swap(false, nil, e)
	default:
		all(false, nil, e)
	}
}

// answer recycles the request and passes the node's reply to the caller. If the reply is invalid,
// the caller gets an error, and answer returns false. A value that is longer than any state counts
// as valid, but the caller gets the error WRONGTYPE.
func (r *request) answer() bool {
	get, swap, all, keys := r.onGet, r.onSwap, r.onAll, r.keys
	if get != nil {
		raw, most := bytesOf(r.get.Val()), int(r.last)
		if len(raw) > most {
			r.free()
			get(nil, &Error{Reason: "WRONGTYPE", Text: "the value is longer than any state", NotDone: true})
			return true
		}
		if len(raw) == 0 { // the key is absent, as is a key with an empty string
			raw = nil
		}
		r.free()
		get(raw, nil)
		return true
	}
	val := r.cmd.(*redis.Cmd).Val()
	applied := val == any(int64(1))
	if swap != nil {
		text, isText := val.(string)
		if !applied && !isText {
			r.fail(malformed)
			return false
		}
		r.free()
		swap(applied, bytesOf(text), nil)
		return true
	}
	var now [][]byte
	if !applied {
		values, _ := val.([]any)
		for _, v := range values {
			text, isText := v.(string)
			if !isText {
				break
			}
			now = append(now, bytesOf(text))
		}
		if len(now) != keys {
			r.fail(malformed)
			return false
		}
	}
	r.free()
	all(applied, now, nil)
	return true
}

var malformed = &Error{Reason: Malformed, Text: "the store replied what no script of ours returns"}

// bytesOf returns the memory of s as bytes, nil if s is empty. There must be no other reference
// to that memory.
func bytesOf(s string) []byte {
	if s == "" {
		return nil
	}
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

// keptKey is the maximum capacity in bytes of the key's buffer in a request that returns to the
// pool.
const keptKey = 1 << 10

// free clears the request and returns it to the pool, unless the buffer of its key is larger than
// keptKey.
func (r *request) free() {
	r.get.SetVal("")
	r.swap.SetVal(nil)
	r.tag.b, r.value.b = nil, nil
	r.onGet, r.onSwap, r.onAll, r.script, r.cmd, r.refusal = nil, nil, nil, nil, nil, nil
	r.tries, r.asking, r.eval, r.keys = 0, false, false, 0
	if cap(r.key.b) <= keptKey {
		requests.Put(r)
	}
}
