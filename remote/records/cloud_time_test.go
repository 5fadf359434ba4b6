package records_test

import (
	"container/heap"
	"iter"
	"slices"
	"time"
)

// timeline is virtual time. Events happen in order of time, and those of one instant in the order in which they were
// scheduled, all on one goroutine at a time. Equal seeds make equal histories.
type timeline struct {
	now     time.Duration
	due     moments
	asked   uint64
	running *process // nil while no process runs
}

// moment is an event.
type moment struct {
	at     time.Duration
	asked  uint64
	happen func()
}

type moments []moment

func (m moments) Len() int { return len(m) }
func (m moments) Less(i, j int) bool {
	return m[i].at < m[j].at || m[i].at == m[j].at && m[i].asked < m[j].asked
}
func (m moments) Swap(i, j int) { m[i], m[j] = m[j], m[i] }
func (m *moments) Push(x any)   { *m = append(*m, x.(moment)) }
func (m *moments) Pop() any {
	last := len(*m) - 1
	x := (*m)[last]
	(*m)[last] = moment{}
	*m = (*m)[:last]
	return x
}

// after calls f after d.
func (l *timeline) after(d time.Duration, f func()) {
	l.asked++
	heap.Push(&l.due, moment{l.now + max(d, 0), l.asked, f})
}

// runUntil lets everything happen until the instant.
func (l *timeline) runUntil(end time.Duration) {
	for len(l.due) > 0 && l.due[0].at <= end {
		m := heap.Pop(&l.due).(moment)
		l.now = m.at
		m.happen()
	}
	l.now = end
}

// process is code that takes virtual time, such as a command or the goroutine of a server that follows the records. Each
// runs as a coroutine, so that a blocking method of the product may wait in it.
type process struct {
	l     *timeline
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	over  bool
	// writes says what the process is writing at the moment.
	writes writing
}

// killed is the panic that ends a process whose server was killed.
type killed struct{}

// start starts a process.
func (l *timeline) start(f func(p *process)) *process {
	p := &process{l: l}
	p.next, p.stop = iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			p.over = true
			if r := recover(); r != nil && r != (killed{}) {
				panic(r)
			}
		}()
		p.yield = yield
		f(p)
	})
	l.after(0, p.resume)
	return p
}

// resume goes on with the process, until it waits or ends.
func (p *process) resume() {
	if p.over {
		return
	}
	before := p.l.running
	p.l.running = p
	_, _ = p.next()
	p.l.running = before
}

// kill ends the process where it waits.
func (p *process) kill() {
	p.over = true
	p.stop()
}

// wait waits for a call of resume.
func (p *process) wait() {
	if !p.yield(struct{}{}) {
		panic(killed{})
	}
}

// sleep waits for d.
func (p *process) sleep(d time.Duration) {
	p.l.after(d, p.resume)
	p.wait()
}

// turn is a mutex for processes. The product's own mutexes stop the goroutine of all processes, so a process must have the
// turn of a mutex before it calls a method that waits while it holds it.
type turn struct {
	taken   bool
	waiting []*process
}

func (t *turn) take(p *process) {
	if t.taken {
		t.waiting = append(t.waiting, p)
		p.wait() // until it is given the turn
	}
	t.taken = true
}

func (t *turn) give() {
	if len(t.waiting) == 0 {
		t.taken = false
		return
	}
	next := t.waiting[0]
	t.waiting = slices.Delete(t.waiting, 0, 1)
	next.l.after(0, next.resume)
}
