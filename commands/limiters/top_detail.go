package limiters

import (
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/stats"
)

// detail describes a call. It has an array for the arguments, because those of the call are gone
// when its batch ends, and so that storing a detail allocates nothing.
type detail struct {
	client  int64
	command string
	retry   int64 // nanoseconds
	words   [stats.MaxSeenArgs]byte
	length  uint8 // the number of bytes of words in use
	limit   uint8 // how many of these bytes give the limit
}

// set fills d from the running command. If a Remote has decided, the arguments of the command are
// no longer available.
func (d *detail) set(c *command.Call, family decide.Family, retry int64) {
	d.client, d.command, d.retry, d.length, d.limit = c.Client.ID, c.Cmd.Name, retry, 0, 0
	from, limitWords := 2, 3
	switch family {
	case decide.Counter:
		d.setBounds(c.Args)
		return
	case decide.Window:
		limitWords = 2
	case decide.Lease:
		limitWords = 2
	case decide.Several:
		if _, end, _ := c.Cmd.Keys.Range(c.Args); end > 0 {
			from, limitWords = end, len(c.Args)
		}
	}
	words, member := c.Args, len(c.Args)
	switch family { // a member may identify the caller, as a key does
	case decide.Lease:
		words = words[:min(len(words), from+limitWords)]
	case decide.Several:
		member = memberAt(words, from)
	}
	if namesPolicy(c) { // the policy has the limit, and the key follows its name
		from, limitWords, words = 1, 1, words[:min(len(words), 2)]
	}
	for i := from; i < len(words); i++ {
		if i == member || i == member+1 {
			continue
		}
		if d.add(words[i]); i < from+limitWords {
			d.limit = d.length
		}
	}
}

// setBounds adds the arguments of an INCREX that give the limit and its period. It leaves out an
// instant, which differs for each call.
func (d *detail) setBounds(words [][]byte) {
	for i := 2; i+1 < len(words); i++ {
		switch name := words[i]; {
		case arg.IsWord(name, "LBOUND"), arg.IsWord(name, "UBOUND"), arg.IsWord(name, "EX"), arg.IsWord(name, "PX"):
			i++
			d.add(name)
			d.add(words[i])
		}
	}
	d.limit = d.length
}

// add appends a word as far as it fits.
func (d *detail) add(word []byte) {
	n := int(d.length)
	if n > 0 && n < len(d.words) {
		d.words[n] = ' '
		n++
	}
	n += copy(d.words[n:], word)
	d.length = uint8(n)
}

// memberAt returns the index of the option MEMBER in an RL.MULTI, or len(words).
func memberAt(words [][]byte, from int) int {
	for i := from; i < len(words); i++ {
		if arg.IsWord(words[i], "MEMBER") {
			return i
		}
	}
	return len(words)
}

// call returns d as a value that is independent of the worker's memory.
func (d *detail) call() stats.SeenCall {
	return stats.SeenCall{Command: d.command, Args: string(d.words[:d.length]), Limit: int(d.limit), RetryAfter: time.Duration(max(0, d.retry))}
}

// sameLimit reports whether two calls have the same command and limit.
func (d *detail) sameLimit(o *detail) bool {
	return d.limit == o.limit && d.command == o.command && string(d.words[:d.limit]) == string(o.words[:o.limit])
}

// callers is a ring of the latest clients that called a key.
type callers struct {
	ids  [stats.MaxSeenClients]int64
	last uint8
}

func (cs *callers) add(id int64) {
	for _, known := range cs.ids {
		if known == id {
			return
		}
	}
	cs.last = (cs.last + 1) % stats.MaxSeenClients
	cs.ids[cs.last] = id
}

// list returns the clients, with the newest last.
func (cs *callers) list() []int64 {
	var ids []int64
	for i := range cs.ids {
		if id := cs.ids[(int(cs.last)+1+i)%len(cs.ids)]; id != 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// quietTime is the time without a call after which the next one counts as a new beginning.
const quietTime = limit.Instant(60e9)

// span has the first and the latest occurrence of the key of a slot.
type span struct{ first, last limit.Instant }

// note adds an occurrence at now.
func (t *span) note(now limit.Instant) {
	if t.first == 0 || now > t.last+quietTime {
		t.first = now
	}
	t.last = max(t.last, now)
}

// manner has the details of the newest call of a key, and the clients that made such calls. It
// belongs to another key if known is false.
type manner struct {
	known   bool
	callers callers
	newest  detail
}

// note adds a call.
func (m *manner) note(is *detail) {
	if !m.known {
		m.known, m.callers = true, callers{}
	}
	m.newest = *is
	m.callers.add(is.client)
}
