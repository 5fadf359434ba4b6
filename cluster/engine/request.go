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

// script is a script of the engine: its text, and the digest by which the node knows it.
type script struct{ text, sha any }

func newScript(text string) *script {
	sum := sha1.Sum([]byte(text))
	return &script{text: text, sha: hex.EncodeToString(sum[:])}
}

var (
	swapOne     = newScript(swapScript)
	swapSeveral = newScript(swapAllScript)
)

// word is an argument of a command. It records whether it was written, because what was not written
// was not sent.
type word struct {
	b    []byte
	sent bool
}

// MarshalBinary is called when the command is written.
func (w *word) MarshalBinary() ([]byte, error) {
	w.sent = true
	return w.b, nil
}

// request is one command that waits for a node or has been sent to one. Only one goroutine at a
// time uses it.
type request struct {
	at      time.Duration // when it was submitted
	slot    int
	size    int    // approximate number of bytes to write
	tries   uint8  // how often it was sent to other nodes or again
	asking  bool   // the next node does not have the slot yet
	eval    bool   // the node lacks the script's text
	refusal *Error // reason why it is answered without a node

	key, tag, value word
	keep            int64
	last            int64 // index of the last byte to read
	get             *redis.StringCmd
	swap            *redis.Cmd
	args            [7]any // of swap
	script          *script
	cmd             redis.Cmder // the one of the two commands in use

	onGet  func(raw []byte, err error)
	onSwap func(applied bool, now []byte, err error)
	onAll  func(applied bool, now [][]byte, err error)
	keys   int // of onAll
}

var requests = sync.Pool{New: func() any {
	r := &request{}
	ctx := context.Background()
	r.get = redis.NewStringCmd(ctx, "getrange", &r.key, 0, &r.last)
	r.args = [7]any{"evalsha", swapOne.sha, 1, &r.key, &r.tag, &r.value, &r.keep}
	r.swap = redis.NewCmd(ctx, r.args[:]...)
	return r
}}

func newRequest(prefix string, key []byte, slot int) *request {
	r := requests.Get().(*request)
	r.key.b = append(append(r.key.b[:0], prefix...), key...)
	r.slot, r.size = slot, len(r.key.b)
	return r
}

// newGet returns a request for the value of a key. Of a value longer than most, which no server has
// written, it reads most+1 bytes: all of it would delay other requests.
func newGet(prefix string, key []byte, slot, most int, done func([]byte, error)) *request {
	r := newRequest(prefix, key, slot)
	r.last = int64(most)
	r.cmd, r.onGet = r.get, done
	return r
}

// newSwap returns a request for a compare-and-set.
func newSwap(prefix string, w Write, slot int, done func(bool, []byte, error)) *request {
	r := newRequest(prefix, w.Key, slot)
	r.tag.b, r.value.b, r.keep = tagOf(w.Old), w.New, milliseconds(w.Keep)
	r.size += len(w.New)
	r.cmd, r.script, r.onSwap = r.swap, swapOne, done
	return r
}

// newSwapAll returns a request for several keys. It is rare, so it allocates memory.
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

func tagOf(value []byte) []byte { return value[:min(TagLen, len(value))] }

// milliseconds rounds up: a value that expires too early is a limit that is forgotten.
func milliseconds(d time.Duration) int64 {
	return max(1, int64((d+time.Millisecond-1)/time.Millisecond))
}

// command returns the command to send.
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

// writes reports whether the request writes, so that its outcome matters.
func (r *request) writes() bool { return r.script != nil }

// fail answers the request with an error and recycles it.
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

// answer passes the node's reply to the caller and recycles the request. It reports whether the
// reply was valid.
func (r *request) answer() bool {
	get, swap, all, keys := r.onGet, r.onSwap, r.onAll, r.keys
	if get != nil {
		raw, most := bytesOf(r.get.Val()), int(r.last)
		if len(raw) > most {
			r.free()
			get(nil, &Error{Reason: "WRONGTYPE", Text: "the value is longer than any state", NotDone: true})
			return true
		}
		if len(raw) == 0 { // no key; an empty string counts as none
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

// bytesOf returns the memory of s, to which there must be no other reference; nil if s is empty.
func bytesOf(s string) []byte {
	if s == "" {
		return nil
	}
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

// keptKey is how large a key's room may be to be used again.
const keptKey = 1 << 10

// free gives the request back, with nothing in it that keeps memory.
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
