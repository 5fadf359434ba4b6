package web

import (
	"net"
	"net/http"
)

// ServeFrom answers r as a request of the connection conn.
func (s *Server) ServeFrom(conn net.Conn, w http.ResponseWriter, r *http.Request) {
	c, err := s.bound.Bound(&accept{&only{conn: conn}, s.Open}).Accept()
	if err != nil {
		return
	}
	defer c.Close()
	s.serve(w, r.WithContext(s.bound.Context(r.Context(), c)))
}

// only is a listener that accepts one connection.
type only struct {
	net.Listener
	conn net.Conn
}

func (l *only) Accept() (conn net.Conn, err error) {
	if conn, l.conn = l.conn, nil; conn == nil {
		err = net.ErrClosed
	}
	return conn, err
}
