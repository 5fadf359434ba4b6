package server

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/remote"
	"github.com/cellserver/cellserver/remote/records"
	"github.com/cellserver/cellserver/remote/servers"
	"github.com/cellserver/cellserver/report"
	"github.com/cellserver/cellserver/resp"
)

// sharing has the information that servers with the option store exchange.
type sharing struct {
	list *servers.List // the list of the servers of the store; nil without the option store
	id   string        // ID of this server in the list
	// inForce is the version of the policies that the server has in force; nil stands for none.
	inForce atomic.Pointer[records.Version]
	// moved has an element after a change of the version of the records of policies.
	moved chan struct{}
	// others has the summaries that other servers have published.
	others gathered
}

// openSharing creates the list of servers, and sets the options in o by which commands use it. id is the random id of
// this run of the server.
func (s *Server) openSharing(o *env.Options, id string) {
	s.sharing.id, s.sharing.moved = id, make(chan struct{}, 1)
	s.sharing.list = servers.New(servers.Options{Engine: s.remote, ID: id, Own: s.ownRecord, Counted: s.divideBy, Log: s.log})
	s.sharing.others.read, s.sharing.others.now = s.sharing.list.Summaries, s.stopwatch
	o.Summaries = s.topsOfOthers
}

// divideBy sets the number by which fail-policy local divides limits: the number that the option store-servers gives if
// there are n live servers.
func (s *Server) divideBy(n int) { s.remote.SetServers(s.config.StoreServers(n)) }

// policiesMoved signals that the version of the records of policies has changed. It does not block.
func (s *Server) policiesMoved() {
	select {
	case s.sharing.moved <- struct{}{}:
	default:
	}
}

// share keeps the record of this server in the store until ctx ends. It does nothing without the option store.
func (s *Server) share(ctx context.Context) {
	if s.sharing.list == nil {
		return
	}
	var telling sync.WaitGroup
	telling.Go(func() { s.noteInForce(ctx) })
	telling.Go(func() { s.publishSummaries(ctx) })
	s.sharing.list.Run(ctx)
	telling.Wait()
}

// noteInForce sets inForce, and has the record of this server written to the store, after each change of the version of
// the policies, until ctx ends.
func (s *Server) noteInForce(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.sharing.moved:
		}
		v := s.policies.records.Version()
		s.policies.registry.Settle() // the registry has got the records of this version
		s.sharing.inForce.Store(&v)
		s.sharing.list.Changed()
	}
}

// ownRecord returns the record of this server for the other servers.
func (s *Server) ownRecord() servers.Record {
	r := servers.Record{
		Release: Version, Address: s.sharedAddress(), File: s.policies.file.Hash(), Level: policy.Level,
		Tzdata: calendar.Release(), Started: limit.Instant(s.began.UnixNano()),
	}
	if v := s.sharing.inForce.Load(); v != nil {
		r.Version = *v
	}
	return r
}

// sharedAddress returns the address of this server for operators: the address of its first listener. In place of an
// address that stands for all, it has the name of the machine.
func (s *Server) sharedAddress() string {
	open := s.listening.all()
	if len(open) == 0 { // the server has no listener, as in some tests
		return s.reports.id
	}
	at := open[0].Addr()
	if tcp, is := at.(*net.TCPAddr); is && tcp.IP.IsUnspecified() {
		return net.JoinHostPort(s.reports.id, strconv.Itoa(tcp.Port))
	}
	return at.String()
}

// mostShown is the maximum number of servers that INFO and the report list.
const mostShown = 100

// serverFields returns the fields of INFO about the servers of the store.
func (s *Server) serverFields() []env.InfoField {
	all, now := s.sharing.list.Seen(), s.policies.clock()
	fields := []env.InfoField{
		{Name: "store_servers", Value: strconv.Itoa(len(all))},
		{Name: "store_servers_fault", Value: s.sharing.list.Fault()},
	}
	for i := range all[:min(len(all), mostShown)] {
		fields = append(fields, env.InfoField{Name: "store_server" + strconv.Itoa(i), Value: describeServer(&all[i], now)})
	}
	return fields
}

// describeServer returns the description of a server of the store, in the form of INFO commandstats.
func describeServer(is *servers.Server, now limit.Instant) string {
	age := limit.MillisUp(is.Age(now))
	if is.Unreadable {
		return fmt.Sprintf("id=%s,unreadable=1,age_ms=%d", is.ID, age)
	}
	return fmt.Sprintf("id=%s,address=%s,version=%s,policies_version=%s,file=%s,level=%d,tzdata=%s,age_ms=%d",
		is.ID, is.Address, is.Release, is.Version, is.File, is.Level, is.Tzdata, age)
}

// storeServers returns the servers of the store for the report.
func (s *Server) storeServers() []report.StoreServer {
	all, now := s.sharing.list.Seen(), s.policies.clock()
	lines := make([]report.StoreServer, 0, min(len(all), mostShown))
	for i := range all[:min(len(all), mostShown)] {
		is := &all[i]
		lines = append(lines, report.StoreServer{
			ID: is.ID, Address: is.Address, Version: is.Release, Policies: is.Version.String(), File: is.File, Level: is.Level,
			Tzdata: is.Tzdata, AgeMs: limit.MillisUp(is.Age(now)), Started: int64(is.Started) / 1e6, Unreadable: is.Unreadable,
			Self: is.ID == s.sharing.id,
		})
	}
	return lines
}

// policyFiles returns the number of different policy files that servers of the store have. Having none counts as one.
func policyFiles(all []servers.Server) int {
	files := map[string]bool{}
	for i := range all {
		if !all[i].Unreadable {
			files[all[i].File] = true
		}
	}
	return len(files)
}

// policyUnreadable implements the function of [env.Options]: with fail-policy open, calls pass.
func (s *Server) policyUnreadable(name, key []byte) (pass bool, why error) {
	if why = s.policies.registry.UnreadablePolicy(name); why == nil {
		return false, nil
	}
	return remote.FailPolicy(s.config.FailPolicies(), policy.AppendStateKey(nil, name, key, 1, false)) == remote.Opened, why
}

// syncTime is the maximum time for which a change waits until other servers have it.
const syncTime = 5 * time.Second

// syncPolicies waits until all live servers have the version of the policies that this server has now. The error names
// the servers that do not, or may not, have it in time.
func (s *Server) syncPolicies() error {
	ctx, cancel := context.WithTimeout(context.Background(), syncTime)
	defer cancel()
	behind, err := s.sharing.list.Await(ctx, s.policies.records.Version())
	if len(behind) == 0 && err == nil {
		return nil
	}
	text, names := "ERR the change is in force here, but within 5 s it was not confirmed to be on ", "other servers"
	if len(behind) > 0 {
		names = namesOf(behind)
	}
	if err != nil {
		names += ": " + err.Error()
	}
	return resp.Error(text + names)
}

// mostNamed is the maximum number of servers in an error.
const mostNamed = 10

// namesOf returns the names of servers, mostNamed at most.
func namesOf(all []servers.Server) string {
	var names []string
	for i := range all[:min(len(all), mostNamed)] {
		names = append(names, all[i].Name())
	}
	if more := len(all) - mostNamed; more > 0 {
		return fmt.Sprintf("%s and %d others", strings.Join(names, ", "), more)
	}
	return strings.Join(names, ", ")
}

// readableByAll returns an error that names a live server which cannot read entries of policies with the given level,
// or nil. It uses the records of the servers that were seen last, and ignores those that cannot be read.
func (s *Server) readableByAll(level int) error {
	all := s.sharing.list.Seen()
	for i := range all {
		if is := &all[i]; !is.Unreadable && is.Level < level {
			return resp.Error(fmt.Sprintf("ERR server %s has release %s with feature level %d and cannot read this change, which needs level %d: upgrade it (RL.POLICY SET takes FORCE)",
				is.Name(), is.Release, is.Level, level))
		}
	}
	return nil
}
