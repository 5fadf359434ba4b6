package pubsub

import (
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/glob"
	"github.com/cellserver/cellserver/resp"
)

// message is a message that PUBLISH or SPUBLISH sends.
type message struct {
	kind          topicKind
	channel, body []byte
}

// posting is the reusable memory of a worker for the delivery of messages.
type posting struct {
	matched []*topic
	wake    []*command.Client
	cutOff  []*command.Client
	frames  [2]resp.Writer // the message in RESP2 and in RESP3; empty until it is needed
	shared  [2]*command.SharedFrame
	// held has the messages of a transaction or script that has not ended yet. bytes is the memory
	// that they take.
	held  []message
	bytes int
}

const (
	// publishSteps is the maximum cost of matching patterns on an event loop, in comparisons of a
	// character. They take well below a millisecond.
	publishSteps = 1 << 18
	// maxHeld is the maximum memory, in bytes, of the messages that a worker holds until the end of
	// a transaction or script. When they take as much, further messages are delivered at once.
	maxHeld = 16 << 20
	// stepsPerWork is the number of comparisons that count as one unit of work.
	stepsPerWork = 64
	// postWork is the work, in units, of posting a message to one client and waking the client.
	postWork = 4
)

// publish returns the Run function of PUBLISH or SPUBLISH, depending on kind. Inside a transaction
// or script, the message is held until the end, unless the held messages take maxHeld bytes.
// Outside, a message that is slow to match or has many receivers is delivered in the background.
func publish(kind topicKind) func(*command.Call) {
	return func(c *command.Call) {
		m := message{kind: kind, channel: c.Args[1], body: c.Args[2]}
		if len(m.channel) > maxChannel {
			c.Fail(errChannelTooLong)
			return
		}
		h, p := hubOf(c), command.Scratch[posting](c)
		steps := publishSteps
		if c.Client.Exclusive {
			steps = glob.Unlimited
		}
		if !h.match(p, &m, &steps) || c.ExceedsLoop(p.receivers()*postWork) {
			p.forget()
			publishBeside(c, m.clone())
			return
		}
		if c.Client.Exclusive && p.bytes < maxHeld {
			c.Publishes = true
			c.W.Int(int64(p.hold(&m)))
			return
		}
		n := h.post(p, &m)
		c.Work += (publishSteps - steps) / stepsPerWork
		c.W.Int(int64(n))
	}
}

// clone returns a copy of m with its own bytes.
func (m *message) clone() message {
	own := command.CloneArgs([][]byte{m.channel, m.body})
	return message{m.kind, own[0], own[1]}
}

// publishBeside delivers m in the background and replies then.
func publishBeside(c *command.Call, m message) {
	h := hubOf(c)
	c.Offload(func(_ env.Store, w *resp.Writer) {
		steps, p := glob.Unlimited, posting{}
		h.match(&p, &m, &steps)
		w.Int(int64(h.post(&p, &m)))
	})
}

// postOwn is the Post hook: it delivers a message that the server itself sends.
func (h *hub) postOwn(channel, body []byte) {
	m := message{kind: toChannel, channel: channel, body: body}
	steps, p := glob.Unlimited, posting{}
	h.match(&p, &m, &steps)
	h.post(&p, &m)
}

// receivers returns the number of subscriptions to all matched topics. As in Redis, a client that
// is subscribed to several of them counts several times.
func (p *posting) receivers() (n int) {
	for _, t := range p.matched {
		n += t.count()
	}
	return n
}

// hold adds a copy of m to the held messages, unless m has no receivers, and returns the number of
// receivers.
func (p *posting) hold(m *message) (receivers int) {
	receivers = p.receivers()
	p.forget()
	if receivers > 0 {
		p.held = append(p.held, m.clone())
		p.bytes += len(m.channel) + len(m.body) + command.QueuedCost
	}
	return receivers
}

// publishHeld is the AfterCommand hook: it delivers the messages that w has held during a
// transaction or script, which has now ended and has released its locks.
func (h *hub) publishHeld(w *command.Worker) {
	p := h.slot.OfWorker(w).(*posting)
	for i := range p.held {
		steps := glob.Unlimited
		h.match(p, &p.held[i], &steps)
		h.post(p, &p.held[i])
	}
	p.held, p.bytes = nil, 0
}

// match sets p.matched to the topics to which m goes. Only messages of PUBLISH go to patterns.
// *steps is the number of comparisons that match may make; match subtracts those that it makes, and
// returns false if they were too few.
func (h *hub) match(p *posting, m *message, steps *int) bool {
	p.matched = p.matched[:0]
	if t := h.spaces[m.kind].get(m.channel); t != nil {
		p.matched = append(p.matched, t)
	}
	if m.kind != toChannel {
		return true
	}
	for _, t := range h.spaces[toPattern].list() {
		if glob.MatchWithin(t.name, m.channel, steps) {
			p.matched = append(p.matched, t)
		}
		if *steps <= 0 {
			return false
		}
	}
	return true
}

// post delivers m to the subscribers of the matched topics. receivers is their number. After the
// locks of the topics are released, post wakes the clients, and disconnects those whose output
// buffer is too large.
func (h *hub) post(p *posting, m *message) (receivers int) {
	memory, host := 0, &h.server.Host
	for _, t := range p.matched {
		n, taken := h.postTo(p, t, m)
		receivers, memory = receivers+n, memory+taken
	}
	if memory != 0 {
		host.Messages.Posted(memory)
	}
	for _, cl := range p.wake {
		host.Messages.Follow(cl, command.PostedFirst)
	}
	for _, cl := range p.cutOff {
		host.Messages.Follow(cl, command.PostedTooMuch)
	}
	p.forget()
	return receivers
}

// postTo posts m to the subscribers of t. It holds the lock of t, so that all of them get messages
// in the same order. memory is the memory in bytes that the posted messages take. postTo adds to p
// the clients that the caller has to wake or disconnect.
func (h *hub) postTo(p *posting, t *topic, m *message) (receivers, memory int) {
	t.mu.Lock()
	for _, member := range t.members {
		cl := member.client
		i := 0
		if cl.Protocol.Load() == 3 {
			i = 1
		}
		if len(p.frames[i].Buf) == 0 {
			memory += p.encode(i, t, m)
		}
		next, taken := h.server.Host.Messages.Post(cl, p.frames[i].Buf, p.shared[i])
		memory += taken
		switch next {
		case command.PostedFirst:
			p.wake = append(p.wake, cl)
		case command.PostedTooMuch:
			p.cutOff = append(p.cutOff, cl)
		}
	}
	receivers = len(t.members)
	t.mu.Unlock()
	return receivers, memory + p.forgetFrames()
}

// messageWords are the first words of messages, by the kind of the topic.
var messageWords = [topicKinds]string{"message", "pmessage", "smessage"}

// encode encodes m for the subscribers of t, in RESP2 if i is 0 and in RESP3 if i is 1. memory is
// the size in bytes of a long message, which the subscribers share, and 0 for a short one.
func (p *posting) encode(i int, t *topic, m *message) (memory int) {
	w := &p.frames[i]
	w.Proto = 2 + i
	if t.kind == toPattern {
		w.Push(4)
	} else {
		w.Push(3)
	}
	w.BulkString(messageWords[t.kind])
	if t.kind == toPattern {
		w.Bulk(t.name)
	}
	w.Bulk(m.channel)
	w.Bulk(m.body)
	if len(w.Buf) < command.SharedFrom {
		return 0
	}
	p.shared[i] = &command.SharedFrame{Bytes: w.Buf}
	p.shared[i].Refs.Store(1)
	return len(w.Buf)
}

// forgetFrames empties the frames for the next message. memory is 0 or negative: the change of
// memory by long messages that no client has taken.
func (p *posting) forgetFrames() (memory int) {
	for i := range p.frames {
		if f := p.shared[i]; f != nil {
			if f.Refs.Add(-1) == 0 {
				memory -= len(f.Bytes)
			}
			p.shared[i], p.frames[i].Buf = nil, nil
		}
		p.frames[i].Buf = p.frames[i].Buf[:0]
	}
	return memory
}

// forget drops the references to the topics and clients of the last message, and buffers that are
// too large to be kept.
func (p *posting) forget() {
	clear(p.matched)
	clear(p.wake)
	clear(p.cutOff)
	p.matched, p.wake, p.cutOff = p.matched[:0], p.wake[:0], p.cutOff[:0]
	if cap(p.matched) > command.KeptPosting {
		p.matched = nil
	}
	if cap(p.wake) > command.KeptPosting {
		p.wake = nil
	}
}
