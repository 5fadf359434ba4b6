package web

import (
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/cellserver/cellserver/front/headers"
)

// counted are the statuses of responses that have counters of their own. All other statuses share one counter.
var counted = [...]int{
	http.StatusOK, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound,
	http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable,
}

// otherStatus is the name of all statuses that are not in counted.
const otherStatus = "other"

// counts has the number of responses with each status of counted and, as the last element, with any
// other status.
type counts [len(counted) + 1]atomic.Int64

// add counts a response with a status.
func (c *counts) add(status int) {
	i := slices.Index(counted[:], status)
	if i < 0 {
		i = len(counted)
	}
	c[i].Add(1)
}

// count counts the response with an answer.
func (s *Server) count(a *headers.Answer) {
	if a.Denied {
		s.counts.add(http.StatusTooManyRequests)
		return
	}
	s.counts.add(http.StatusOK)
}

// Responses calls emit for each status with the number of responses of requests since the start. A denial counts as
// 429 even if the parameter deny gives it another status. code is the status, or "other" for all those that
// are rare. Any goroutine may call it.
func (s *Server) Responses(emit func(code string, n int64)) {
	for i, status := range counted {
		emit(strconv.Itoa(status), s.counts[i].Load())
	}
	emit(otherStatus, s.counts[len(counted)].Load())
}
