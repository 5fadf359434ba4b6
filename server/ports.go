package server

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cellserver/cellserver/config"
)

// preparePorts opens the client ports whose options in next differ from the present ones, and
// returns a function apply that serves clients on the new ports and closes the old ones. Connected
// clients stay connected. apply is nil if no port differs. It is an error if a port cannot be
// opened or no listener would be left. On an error preparePorts has closed the ports that it
// opened.
func (s *Server) preparePorts(next *config.Config) (apply func(), err error) {
	var changed []string
	for _, option := range portOptions {
		if next.Value(option) != s.config.Value(option) {
			changed = append(changed, option)
		}
	}
	if len(changed) == 0 {
		return nil, nil
	}
	var opened []*listener
	for _, option := range changed {
		more, err := s.listenTCP(next, option)
		if err != nil {
			err = next.At(option, fmt.Errorf("Unable to listen on this port: %w", err)) //nolint:staticcheck // the words of Redis
			return nil, errors.Join(err, closeAll(opened))
		}
		opened = append(opened, more...)
	}
	for _, l := range opened {
		l.late = true
	}
	others := func(l *listener) bool { return !slices.Contains(changed, l.option) }
	if len(opened) == 0 && !slices.ContainsFunc(s.listening.all(), others) && !s.hasFront() {
		return nil, next.At(changed[0], errNoListener)
	}
	return func() { s.replaceListeners(changed, opened) }, nil
}

// replaceListeners serves clients on opened, and then closes the listeners that the given options
// had before. If the server is stopping, it closes opened instead.
func (s *Server) replaceListeners(options []string, opened []*listener) {
	ls := &s.listening
	ls.mu.Lock()
	var kept, gone []*listener
	for _, l := range ls.open {
		if slices.Contains(options, l.option) {
			gone = append(gone, l)
		} else {
			kept = append(kept, l)
		}
	}
	if ls.ended { // the server accepts no more clients
		ls.mu.Unlock()
		_ = closeAll(opened) // an error does not matter, since no client was accepted on these listeners
		return
	}
	ls.open = ls.open[:0:0]
	for _, option := range append(slices.Clone(portOptions), "unixsocket") {
		for _, l := range slices.Concat(kept, opened) {
			if l.option == option {
				ls.open = append(ls.open, l)
			}
		}
	}
	if ls.serve != nil {
		for _, l := range opened {
			ls.serve(l)
		}
	}
	ls.mu.Unlock()
	for _, l := range gone {
		l.retired.Store(true)
		s.transport.Retire(l.Listener)
	}
	s.notePort()
	s.log.Info("the server listens on other ports", "addresses", s.addresses())
}

// begin calls serve for each listener. From then on replaceListeners calls it for each listener
// that it adds.
func (ls *listening) begin(serve func(l *listener)) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.serve = serve
	for _, l := range ls.open {
		serve(l)
	}
}

// end makes later calls of replaceListeners close the new listeners instead of adding them.
func (ls *listening) end() {
	ls.mu.Lock()
	ls.ended = true
	ls.mu.Unlock()
}

// serve accepts clients of l until l is retired, l fails or the server stops. If l fails, serve
// calls fail with the error; if l was opened while the server was running, it only logs the error.
// When the server stops, serve calls fail with nil.
func (s *Server) serve(l *listener, fail func(error)) {
	err := s.transport.Serve(l.Listener)
	switch {
	case l.retired.Load():
	case l.late && err != nil:
		s.log.Error("a port is not served any more", "address", l.Addr().String(), "error", err)
	default:
		fail(err)
	}
}

func closeAll(listeners []*listener) (err error) {
	for _, l := range listeners {
		err = errors.Join(err, l.Close())
	}
	return err
}
