package loadgen

import (
	"math/rand/v2"
	"time"
)

// The following names are exported for the tests of this package.

var SplitWords = splitWords

const (
	MaxReply = maxReply
	SeqWidth = seqWidth
)

// Spell returns the time before a refusal that explains it, Owed the units that must have been
// granted within it.
func (l *Limit) Spell() time.Duration { return l.spell }

func (l *Limit) Owed(asked int64) int64 { return l.owed(asked) }

// Encode returns a template's request for one key.
func (t *Template) Encode(key, seq uint64, pick int) string {
	return string(t.append(nil, key, seq, pick))
}

// Draw draws n templates of a mix. It returns how often it drew each, and the sum of the drawn
// indexes of quantities.
func (m *Mix) Draw(seed uint64, n int) (commands []int, picks int) {
	r := rand.New(rand.NewPCG(seed, 0))
	commands = make([]int, len(m.templates))
	for range n {
		command, pick := m.draw(r)
		commands[command]++
		picks += pick
	}
	return commands, picks
}

// Sample draws n keys as flow number index of flows would.
func (k KeySpec) Sample(seed uint64, n, index, flows int) []uint64 {
	source := k.source(rand.New(rand.NewPCG(seed, uint64(index))), index, flows)
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = source.next()
	}
	return keys
}

// Scanned is the result of scanReply.
type Scanned struct {
	Kind   byte
	Length int64
	Ints   []int64
	Text   string
}

// Scan parses the first reply of b.
func Scan(b []byte) (Scanned, int, error) {
	var r reply
	n, err := scanReply(b, &r)
	return Scanned{Kind: r.kind, Length: r.length, Ints: append([]int64{}, r.ints[:r.n]...), Text: string(r.text)}, n, err
}

// Bench is a flow for which a test determines the instants and the replies.
type Bench struct {
	flow *flow
	plan *plan
	rec  *recorder
	pace *pace
}

// NewBench returns the only flow of a run.
func NewBench(o Options) *Bench {
	p := &plan{mix: o.Mix, ledgers: newLedgers(o.Mix, o.Keys, o.SharedKeys), pipeline: o.Pipeline, from: int64(o.Warmup), until: int64(o.Warmup + o.Duration)}
	rec := newRecorder(len(o.Mix.templates))
	b := &Bench{plan: p, rec: rec, flow: newFlow(p, rec, o.Seed, o.Keys, 0, 1, o.share(0))}
	if o.Rate > 0 {
		b.pace = newPace(o.Rate, 0, 1)
	}
	return b
}

// Send encodes the requests that are due at an instant.
func (b *Bench) Send(now time.Duration) {
	if b.pace == nil {
		b.flow.batch(int64(now))
		return
	}
	for b.pace.next() <= int64(now) && !b.plan.over(b.pace.next()) {
		b.flow.follow(b.pace, int64(now))
	}
}

// Waiting returns the number of requests without a reply.
func (b *Bench) Waiting() int { return b.flow.waiting.len() }

// Taken returns the bytes that were encoded since the last call.
func (b *Bench) Taken() string {
	out := string(b.flow.out)
	b.flow.wrote(len(b.flow.out))
	return out
}

// Reply passes bytes to the flow at an instant.
func (b *Bench) Reply(now time.Duration, text string) error {
	for len(text) > 0 {
		n := copy(b.flow.room(), text)
		b.flow.got(n)
		text = text[n:]
		if err := b.flow.receive(int64(now)); err != nil {
			return err
		}
	}
	return nil
}

// Finished reports whether the flow has sent everything and received all replies.
func (b *Bench) Finished(now time.Duration) bool {
	return b.flow.finished((&worker{plan: b.plan}).over(b.pace, int64(now)))
}

// Result returns the result of a run of length span.
func (b *Bench) Result(o Options, span time.Duration) *Result {
	r := &run{
		target: &Target{Name: "fake"}, options: &o, plan: b.plan, recorders: []*recorder{b.rec},
		workers: []*worker{{flows: []*flow{b.flow}}}, span: span,
	}
	return r.result()
}

// GiveUp calls a watchdog with one number of completed replies per step, and returns the instant at
// which it gives up, or -1.
func GiveUp(until, grace time.Duration, busy bool, step time.Duration, completed []int64) time.Duration {
	w := watchdog{plan: &plan{until: int64(until)}, grace: int64(grace), deadline: never, busy: busy}
	for i, n := range completed {
		now := time.Duration(i) * step
		if w.giveUp(int64(now), n) {
			return now
		}
	}
	return -1
}

// Drivers returns the names of the drivers of this system.
func Drivers() []string {
	if driveEpoll == nil {
		return []string{DriverGoroutine}
	}
	return []string{DriverEpoll, DriverGoroutine}
}
