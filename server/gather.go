package server

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/cellserver/cellserver/remote/servers"
	"github.com/cellserver/cellserver/report"
	"github.com/cellserver/cellserver/stats"
)

// summaryLevel is the number at the beginning of a published summary. Blocks follow it: the most frequent keys for
// RL.TOP FLEET, and the server's share of the reports about all servers. A release that adds further blocks keeps the
// level.
const summaryLevel = 1

// publishSummaries publishes summaries of this server, for RL.TOP FLEET and the reports of other servers, until ctx
// ends. After a failure it does not repeat a summary, because the next one replaces it.
func (s *Server) publishSummaries(ctx context.Context) {
	next := time.NewTicker(servers.SummaryPeriod)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		_ = s.sharing.list.Publish(ctx, s.summary())
	}
}

// summary returns the bytes of the summary that this server publishes.
func (s *Server) summary() []byte {
	b := binary.AppendUvarint(nil, summaryLevel)
	b = stats.PackBlock(b, func(b []byte) []byte {
		if seen := s.engine.Seen; seen != nil {
			b = seen.AppendSummary(b, s.engine.Options.Now())
		}
		return b
	})
	return stats.PackBlock(b, s.reports.reporter.AppendShare)
}

// parseSummary returns the blocks of b, the summary of another server, which may be any bytes. They are nil if this
// release cannot read b.
func parseSummary(b []byte) (tops, share []byte) {
	p := stats.Unpack(b)
	if p.Number(math.MaxInt32) != summaryLevel {
		return nil, nil
	}
	tops, share = p.Bytes(servers.MaxSummary), p.Bytes(servers.MaxSummary)
	if !p.OK() {
		return nil, nil
	}
	return tops, share
}

// gathered has the summaries of other servers. It reads them at most once in each [servers.SummaryPeriod]. Any
// goroutine may use it.
type gathered struct {
	read func(ctx context.Context) ([]servers.Summary, error)
	now  func() time.Duration

	mu     sync.Mutex
	asking chan struct{} // closed at the end of the read in progress; nil if there is none; guarded by mu
	latest *gathering    // the result of the last read; nil before the end of the first one; guarded by mu
}

// gathering is the result of a read. It is never changed.
type gathering struct {
	at     time.Duration
	others []servers.Summary
	shares []*report.Share // the share in each element of others; nil if it cannot be read
	err    error
}

// gatherTime is the maximum time of a read.
const gatherTime = 3 * time.Second

var errNotGathered = errors.New("the figures of other servers were not read yet")

// get returns the summaries of other servers, and the time since they were read. If that is a period or longer, and
// wait is set, get reads them again, or waits for a read in progress.
func (g *gathered) get(wait bool) (latest *gathering, age time.Duration) {
	for {
		g.mu.Lock()
		latest, asking := g.latest, g.asking
		if latest != nil {
			age = g.now() - latest.at
		}
		switch {
		case latest != nil && (age < servers.SummaryPeriod || !wait):
			g.mu.Unlock()
			return latest, age
		case !wait:
			g.mu.Unlock()
			return &gathering{err: errNotGathered}, 0
		case asking != nil:
			g.mu.Unlock()
			<-asking
		default:
			done := make(chan struct{})
			g.asking = done
			g.mu.Unlock()
			is := g.gather()
			g.mu.Lock()
			g.latest, g.asking = is, nil
			g.mu.Unlock()
			close(done)
		}
	}
}

// gather reads the summaries of other servers.
func (g *gathered) gather() *gathering {
	ctx, cancel := context.WithTimeout(context.Background(), gatherTime)
	defer cancel()
	is := &gathering{}
	is.others, is.err = g.read(ctx)
	is.shares = make([]*report.Share, len(is.others))
	for i := range is.others {
		if _, b := parseSummary(is.others[i].Bytes); b != nil {
			is.shares[i], _ = report.ParseShare(b) // a share that cannot be read is nil
		}
	}
	is.at = g.now()
	return is
}

// topsOfOthers is the function Summaries of [env.Options].
func (s *Server) topsOfOthers() ([][]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), gatherTime)
	defer cancel()
	all, err := s.sharing.list.Summaries(ctx)
	if err != nil {
		return nil, err //nolint:wrapcheck // the command replies this error
	}
	tops := make([][]byte, len(all))
	for i := range all {
		if !all[i].Late(0) {
			tops[i], _ = parseSummary(all[i].Bytes)
		}
	}
	return tops, nil
}

// Others implements [report.Source]. While the store does not answer, the result has the servers that were seen last,
// without figures.
func (r *reporting) Others(wait bool) ([]report.Other, error) {
	sharing := &r.s.sharing
	if sharing.list == nil {
		return nil, nil
	}
	got, age := sharing.others.get(wait)
	byID := make(map[string]int, len(got.others))
	for i := range got.others {
		byID[got.others[i].ID] = i
	}
	var all []report.Other
	for _, is := range sharing.list.Seen() {
		if is.ID == sharing.id {
			continue
		}
		o := report.Other{ID: is.ID, Name: is.Name()}
		if i, has := byID[is.ID]; has {
			o.Share, o.Age, o.Late = got.shares[i], got.others[i].Age+age, got.others[i].Late(age)
		}
		all = append(all, o)
	}
	return all, got.err //nolint:wrapcheck // the report shows this error
}
