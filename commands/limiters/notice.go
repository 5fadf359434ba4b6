package limiters

import (
	"encoding/json"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/stats"
)

// noticeChannel is the prefix of the channels of notices. The name of the policy follows it.
const noticeChannel = "rl:notify:"

// noticeBody is the message of a notice, as JSON.
type noticeBody struct {
	Event  string           `json:"event"`
	Policy string           `json:"policy"`
	Key    stats.ClientText `json:"key"`
	DB     int              `json:"db"`
	Clause string           `json:"clause"`
	Limit  int64            `json:"limit"`
	Used   int64            `json:"used"`
	// ResetMs is the time until the units are free again, in milliseconds, rounded up.
	ResetMs int64 `json:"reset_ms"`
	// Passes says that the policy is a shadow, so that the denied call passes nevertheless.
	Passes bool `json:"passes"`
}

// newNotices returns the notices of the server s, which go to subscribers and to the log. The log gets no keys.
func newNotices(s *command.Server) *ratelimit.Notices {
	spawn := func(f func()) { s.Host.Work.Spawn(f) }
	return ratelimit.NewNotices(spawn, func(n ratelimit.Notice) {
		body, err := json.Marshal(noticeBody{
			n.Event.String(), n.Policy, stats.ClientText(n.Key), n.DB, n.Clause, n.Limit, n.Used, limit.MillisUp(n.ResetAfter), n.Passes,
		})
		if err != nil {
			s.Log.Error("a notice cannot be written", "error", err)
			return
		}
		s.Post([]byte(noticeChannel+n.Policy), body)
		about := s.Log.With("policy", n.Policy, "clause", n.Clause, "limit", n.Limit, "used", n.Used, "passes", n.Passes)
		if n.Event == ratelimit.Denied {
			about.Info("a policy denies calls of a key")
		} else {
			about.Info("a key has reached the mark of its policy")
		}
	})
}
