package chaos_test

import (
	"bytes"
	"math/rand/v2"
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
)

// The types of the toxins below.
const cutType, holdType = "cut", "hold"

func init() {
	toxics.Register(cutType, new(cutToxic))
	toxics.Register(holdType, new(holdToxic))
}

// cutToxic loses replies: what was asked for is done, and the connection ends.
type cutToxic struct {
	OneIn int `json:"oneIn"`
}

// Pipe implements toxics.Toxic.
func (t *cutToxic) Pipe(stub *toxics.ToxicStub) {
	for {
		select {
		case <-stub.Interrupt:
			return
		case c := <-stub.Input:
			if c == nil {
				stub.Close()
				return
			}
			if rand.IntN(t.OneIn) == 0 {
				stub.Close()
				drain(stub.Input)
				return
			}
			stub.Output <- c
		}
	}
}

// drain reads what is left over, so that its writer comes to an end.
func drain(input <-chan *stream.StreamChunk) {
	for c := range input {
		if c == nil {
			return
		}
	}
}

// holdToxic delays what a master tells a replica once that has begun to follow, and nothing
// else: neither clients' replies nor first copies.
type holdToxic struct {
	Latency int64 `json:"latency"` // ms
}

// follower is whether a connection is a replica's that follows its master.
type follower struct{ is bool }

// NewState implements toxics.StatefulToxic.
func (*holdToxic) NewState() any { return new(follower) }

// GetBufferSize implements toxics.BufferedToxic: here waits what is held back.
func (*holdToxic) GetBufferSize() int { return 1 << 16 }

// Pipe implements toxics.Toxic.
func (t *holdToxic) Pipe(stub *toxics.ToxicStub) {
	state := stub.State.(*follower)
	for {
		select {
		case <-stub.Interrupt:
			return
		case c := <-stub.Input:
			if c == nil {
				stub.Close()
				return
			}
			var wait time.Duration
			if state.is {
				wait = time.Until(c.Timestamp.Add(time.Duration(t.Latency) * time.Millisecond))
			}
			state.is = state.is || bytes.HasPrefix(c.Data, []byte("+CONTINUE"))
			select {
			case <-time.After(wait):
				stub.Output <- c
			case <-stub.Interrupt:
				stub.Output <- c
				return
			}
		}
	}
}
