package limiters

import (
	"time"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/stats"
)

// detail describes a sampled call. Its array for the arguments exists because the arguments of the
// call are gone when its batch ends. It is an array, not a slice, so that storing a detail
// allocates nothing.
type detail struct {
	client  int64
	command string
	retry   int64 // when the call may be repeated, in nanoseconds; negative if never
	words   [stats.MaxSeenArgs]byte
	length  uint8 // the number of bytes of words in use
	limit   uint8 // the number of bytes of words, from the beginning, that give the limit
}

// set fills d from the running command, which has made a decision of family. retry is the time
// after which the call may be repeated, in nanoseconds. If a Remote has decided, the arguments of
// the command are no longer available.
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
// expiry that is an instant, since that is different for each call.
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

// add appends a space and word to d.words, as far as they fit.
func (d *detail) add(word []byte) {
	n := int(d.length)
	if n > 0 && n < len(d.words) {
		d.words[n] = ' '
		n++
	}
	n += copy(d.words[n:], word)
	d.length = uint8(n)
}

// memberAt returns the index of the option MEMBER in words, the arguments of an RL.MULTI, at or
// after from. It returns len(words) if there is none.
func memberAt(words [][]byte, from int) int {
	for i := from; i < len(words); i++ {
		if arg.IsWord(words[i], "MEMBER") {
			return i
		}
	}
	return len(words)
}

// call returns a copy of d that does not refer to the worker's memory.
func (d *detail) call() stats.SeenCall {
	return stats.SeenCall{Command: d.command, Args: string(d.words[:d.length]), Limit: int(d.limit), RetryAfter: time.Duration(max(0, d.retry))}
}

// sameLimit reports whether d and o have the same command and the same limit.
func (d *detail) sameLimit(o *detail) bool {
	return d.limit == o.limit && d.command == o.command && string(d.words[:d.limit]) == string(o.words[:o.limit])
}

// callers is a ring buffer with the IDs of the latest clients that have called a key.
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

// list returns the IDs of the clients; that of the newest client is the last.
func (cs *callers) list() []int64 {
	var ids []int64
	for i := range cs.ids {
		if id := cs.ids[(int(cs.last)+1+i)%len(cs.ids)]; id != 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// quietTime is the time without an occurrence after which the next occurrence of a key counts as
// its first.
const quietTime = limit.Instant(60e9)

// span has the instants of the first and of the latest occurrence of a key.
type span struct{ first, last limit.Instant }

// note adds an occurrence at the instant now.
func (t *span) note(now limit.Instant) {
	if t.first == 0 || now > t.last+quietTime {
		t.first = now
	}
	t.last = max(t.last, now)
}

// manner has the details of the newest call on the key of a slot, and the clients that made such
// calls. If known is false, callers and newest are those of an earlier key of the slot.
type manner struct {
	known   bool
	callers callers
	newest  detail
}

// note adds the call that is describes.
func (m *manner) note(is *detail) {
	if !m.known {
		m.known, m.callers = true, callers{}
	}
	m.newest = *is
	m.callers.add(is.client)
}
