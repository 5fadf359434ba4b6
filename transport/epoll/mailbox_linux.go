package epoll

import (
	"sync"
	"sync/atomic"
)

// mailbox passes connections and notices from other threads to a loop.
type mailbox struct {
	any    atomic.Bool // whether there is mail, or a flag of the transport to check
	asleep atomic.Bool // the loop waits in the kernel, so a sender has to write to its eventfd

	mu       sync.Mutex // mu guards the fields below
	closed   bool
	arrivals []*conn
	posts    []*conn
	spare    [2][]*conn
}

func (m *mailbox) post(c *conn, bell int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	m.posts = append(m.posts, c)
	m.signal(bell)
}

func (m *mailbox) arrive(c *conn, bell int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.arrivals = append(m.arrivals, c)
	m.signal(bell)
	return true
}

func (m *mailbox) wake(bell int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.signal(bell)
	}
}

func (m *mailbox) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
}

func (m *mailbox) isClosed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

// shut closes the mailbox unless a connection has arrived. It reports whether the mailbox is
// closed.
func (m *mailbox) shut() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = m.closed || len(m.arrivals) == 0
	return m.closed
}

// signal marks that there is mail, and wakes the loop if it sleeps. bell is the eventfd of the
// loop. The caller holds mu, so that the eventfd cannot be closed meanwhile.
func (m *mailbox) signal(bell int) {
	m.any.Store(true)
	if m.asleep.Load() && m.asleep.Swap(false) {
		writeEventfd(bell)
	}
}

// beginSleep announces that the loop is about to sleep. It returns false if there is mail. Either
// beginSleep sees the mail, or the sender sees that the loop sleeps.
func (m *mailbox) beginSleep() bool {
	m.asleep.Store(true)
	if m.any.Load() {
		m.asleep.Store(false)
		return false
	}
	return true
}

func (m *mailbox) endSleep() { m.asleep.Store(false) }

// take empties the mailbox. The slices that it returns are valid until the next call.
func (m *mailbox) take() (arrivals, posts []*conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.any.Store(false)
	arrivals, posts = m.arrivals, m.posts
	m.arrivals, m.posts = m.spare[0][:0], m.spare[1][:0]
	m.spare[0], m.spare[1] = arrivals, posts
	return arrivals, posts
}

// wake makes the loop check the flags of its transport.
func (l *loop) wake() { l.mail.wake(l.wakeFD) }

func (l *loop) post(c *conn) { l.mail.post(c, l.wakeFD) }

// arrive hands a connection over to the loop. It returns false if the loop has ended.
func (l *loop) arrive(c *conn) bool {
	c.loop.Store(l)
	l.conns.Add(1)
	if l.mail.arrive(c, l.wakeFD) {
		return true
	}
	l.conns.Add(-1)
	return false
}
