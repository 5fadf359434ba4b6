package goroutine

import "github.com/cellserver/cellserver/transport/internal/transporttest"

// NewKeptInput returns the input buffer of a connection with a goroutine.
func NewKeptInput() transporttest.KeptInput { return &keptByGoroutine{} }

type keptByGoroutine struct{ input }

func (k *keptByGoroutine) Room(limit, chunk int) []byte { return k.room(limit, chunk) }
func (k *keptByGoroutine) Received(n int)               { k.added(n) }
func (k *keptByGoroutine) Consumed(n int)               { k.consumed(n) }
func (k *keptByGoroutine) Bytes() []byte                { return k.bytes() }
func (k *keptByGoroutine) Release()                     { k.release() }

func (k *keptByGoroutine) Size() int {
	if k.borrowed == nil {
		return 0
	}
	return k.borrowed.Size(k.w)
}
