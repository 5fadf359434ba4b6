package simnet

import "time"

// Quiet reports whether a read would wait now.
func (c *Conn) Quiet() bool {
	s := c.in
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.broken && len(s.queue) == 0 {
		return false
	}
	at, known := s.arrival()
	return !known || at.After(time.Now())
}
