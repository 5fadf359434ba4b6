package pubsub

import (
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/glob"
	"github.com/cellserver/cellserver/resp"
)

// message is one PUBLISH.
type message struct {
	kind          topicKind
	channel, body []byte
}

// posting is a worker's scratch for handing out messages.
type posting struct {
	matched []*topic
	wake    []*command.Client
	cutOff  []*command.Client
	frames  [2]resp.Writer // the message in RESP2 and RESP3, empty until it is needed
	shared  [2]*command.SharedFrame
	// held are messages of a transaction or script that has not ended yet; bytes is
	// their size.
	held  []message
	bytes int
}

const (
	// publishSteps is how much matching with patterns is done on the loop itself, in
	// comparisons of one character: well below a millisecond.
	publishSteps = 1 << 18
	// maxHeld is how many bytes of messages wait for the end of a transaction. Beyond
	// that they leave at once.
	maxHeld = 16 << 20
	// stepsPerWork is how much matching counts as one unit of work.
	stepsPerWork = 64
	// postWork is the work of leaving a message with one client and waking that.
	postWork = 4
)

// publish is the handler of PUBLISH and SPUBLISH.
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

// clone returns a message that owns its bytes.
func (m *message) clone() message {
	own := command.CloneArgs([][]byte{m.channel, m.body})
	return message{m.kind, own[0], own[1]}
}

// publishBeside publishes what takes long to match, in the background.
func publishBeside(c *command.Call, m message) {
	h := hubOf(c)
	c.Offload(func(_ env.Store, w *resp.Writer) {
		steps, p := glob.Unlimited, posting{}
		h.match(&p, &m, &steps)
		w.Int(int64(h.post(&p, &m)))
	})
}

// receivers counts the clients that have subscribed to what has matched.
func (p *posting) receivers() (n int) {
	for _, t := range p.matched {
		n += t.count()
	}
	return n
}

// hold keeps a message until the transaction or script is over, and returns how many
// clients are to get it.
func (p *posting) hold(m *message) (receivers int) {
	receivers = p.receivers()
	p.forget()
	if receivers > 0 {
		p.held = append(p.held, m.clone())
		p.bytes += len(m.channel) + len(m.body) + command.QueuedCost
	}
	return receivers
}

// publishHeld hands out what was published by a transaction or script, which must
// have ended, locks and all.
func (h *hub) publishHeld(w *command.Worker) {
	p := h.slot.OfWorker(w).(*posting)
	for i := range p.held {
		steps := glob.Unlimited
		h.match(p, &p.held[i], &steps)
		h.post(p, &p.held[i])
	}
	p.held, p.bytes = nil, 0
}

// match finds the topics that a message goes to, unless that takes more steps than
// there are.
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

// post hands a message to the subscribers of the matched topics and returns how many
// these are. They are woken behind the locks.
func (h *hub) post(p *posting, m *message) (receivers int) {
	memory, host := 0, h.server.Host
	for _, t := range p.matched {
		n, taken := h.postTo(p, t, m)
		receivers, memory = receivers+n, memory+taken
	}
	if memory != 0 {
		host.Posted(memory)
	}
	for _, cl := range p.wake {
		host.Follow(cl, command.PostedFirst)
	}
	for _, cl := range p.cutOff {
		host.Follow(cl, command.PostedTooMuch)
	}
	p.forget()
	return receivers
}

// postTo hands a message to the subscribers of one topic, in one order for all.
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
		next, taken := h.server.Host.Post(cl, p.frames[i].Buf, p.shared[i])
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

// messageWords are how messages begin.
var messageWords = [topicKinds]string{"message", "pmessage", "smessage"}

// encode writes the message as the subscribers of t get it, once for each protocol. It
// returns what a long one, which they share, takes.
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

// forgetFrames makes room for the next message, and returns by how much the memory
// changes if nobody took a long one.
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

// forget forgets the clients and topics of the last message.
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
