package web

import (
	"net"
	"net/http"
)

// ServeFrom answers r as a request of the connection conn.
func (s *Server) ServeFrom(conn net.Conn, w http.ResponseWriter, r *http.Request) {
	ctx := s.connections.context(r.Context(), conn, s.Open)
	defer s.connections.changed(conn, http.StateClosed)
	s.serve(w, r.WithContext(ctx))
}
