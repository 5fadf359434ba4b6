package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/cellserver/cellserver/acl"
)

// errForbidden is the error for a user without permission to see a report or to run a command. Its
// text is the name of the command that the user may not run.
type errForbidden string

func (e errForbidden) Error() string {
	return "the user has no permissions to run the '" + string(e) + "' command"
}

// Answer returns the report q as JSON, with the parts that u may see. from is the address of the
// request. It is an error if there is no such report, if u may not see the report, or if a command
// that it needs has no reply; the last is a [*Failed].
func (r *Reporter) Answer(u *acl.User, from string, q Query) ([]byte, error) {
	is, err := r.value(u, from, q)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(is)
	if err != nil {
		return nil, fmt.Errorf("making JSON: %w", err)
	}
	return text, nil
}

func (r *Reporter) value(u *acl.User, from string, q Query) (any, error) {
	needs := map[string]string{"clients": "client|list", "slowlog": "slowlog|get"}[q.Report]
	if needs != "" && (u == nil || !r.src.May(u, needs)) {
		return nil, errForbidden(needs)
	}
	if q.Fleet {
		return r.fleetValue(u, &q)
	}
	switch q.Report {
	case "overview":
		return r.Overview(u), nil
	case "history":
		return r.History(u, q.Span), nil
	case "keys":
		return r.Keys(u, q.ByCalls, q.N, q.Group), nil
	case "groups":
		return r.Groups(), nil
	case "changes":
		return r.Changes(u, q.Since), nil
	case "key":
		return r.Key(u, from, q.DB, q.Key)
	case "clients":
		return r.src.Clients(q.N), nil
	case "slowlog":
		return r.src.SlowLog(q.N), nil
	}
	return nil, errNoReport
}

var errNoReport = errors.New("no such report")

// fleetValue returns the report q of all servers of the store.
func (r *Reporter) fleetValue(u *acl.User, q *Query) (any, error) {
	switch q.Report {
	case "overview":
		o := r.Overview(u)
		r.addFleet(&o, !q.Known)
		return o, nil
	case "history":
		return r.fleetHistory(u, q.Span, !q.Known), nil
	case "keys":
		return r.fleetKeys(u, q), nil
	case "groups":
		return r.fleetGroups(!q.Known), nil
	}
	return nil, errNoReport
}

// Key returns the state of the key called key in the database db, as u may see it. from is the
// address of the request. It is an error if u may not read the key.
func (r *Reporter) Key(u *acl.User, from string, db int, key string) (KeyState, error) {
	if !readable(u, key) {
		return KeyState{}, errForbidden("rl.info")
	}
	s := KeyState{DB: db, Key: Key(key), Group: Key(r.src.GroupOf(key)), TTLms: -1, Info: map[string]any{}, Clients: []Caller{}}
	denied, called := index(r.src.Denied()), index(r.src.Called())
	name := keyName{db, key}
	if k := denied[name]; k != nil || called[name] != nil {
		if k == nil {
			k = called[name]
		}
		line := r.keyLine(k, denied[name], called[name], 0, string(s.Group))
		s.Command, s.Args, s.Limit, s.DeniedS, s.CallsS, s.RetryMs, s.Clients, s.Since = line.Command, line.Args, line.Limit, line.DeniedS, line.CallsS, line.RetryMs, line.Clients, line.Since
	}
	var err error
	if s.Policy, err = r.policy(u, from, db, key); err != nil {
		return s, err
	}
	clause := askedWith(s.Command, string(s.Args))
	if s.Policy != nil {
		clause = s.Policy.clauseOf(s.Key)
	}
	info, err := r.run(u, from, db, append([]string{"RL.INFO", key}, clause...)...)
	if err != nil {
		return s, err
	}
	if fields, is := info.(map[string]any); is {
		s.Info, s.Exists = fields, true
	} else if failed, is := info.(RunReply); is {
		s.Info["error"] = failed.Error
	}
	if ttl, err := r.run(u, from, db, "PTTL", key); err == nil {
		if n, is := ttl.(int64); is && n >= 0 {
			s.TTLms = n
		}
	}
	s.Client = r.client(u, db)
	s.Actions = r.offered(u, db, actionsOnKey(&s, clause))
	return s, nil
}

// run runs the command words as u in the database db, and returns its reply as a value for JSON; an
// error reply becomes a [RunReply]. The error says that there is no reply to show.
func (r *Reporter) run(u *acl.User, from string, db int, words ...string) (any, error) {
	args := make([][]byte, len(words))
	for i, w := range words {
		args[i] = []byte(w)
	}
	reply, err := r.src.Execute(u, from, db, args)
	if err != nil {
		return nil, fmt.Errorf("executing: %w", err)
	}
	return decodeReply(reply)
}

// Run implements POST /api/v1/run: it runs the command q.Args as u. An error reply is in the
// result. The error says that there is no reply to show.
func (r *Reporter) Run(u *acl.User, from string, q RunRequest) (RunReply, error) {
	words := make([]string, len(q.Args))
	for i, a := range q.Args {
		words[i] = string(a)
	}
	is, err := r.run(u, from, q.DB, words...)
	if err != nil {
		return RunReply{}, err
	}
	if failed, is := is.(RunReply); is {
		return failed, nil
	}
	return RunReply{Reply: is}, nil
}

// askedWith returns the arguments that RL.INFO needs after the key when the state of the key does
// not contain the limit. It takes them from a sampled call of command with the arguments args; nil
// if the call does not have them.
func askedWith(command, args string) []string {
	words := strings.Fields(args)
	kind, n := "", 1
	switch command {
	case "cl.throttle", "rl.throttle":
		kind, n = "CL", 3
	case "sw.allow":
		kind = "SW"
	case "tb.acquire":
		kind = "TB"
	case "cc.acquire":
		kind = "CC"
	}
	if kind == "" || len(words) < n {
		return nil
	}
	return append([]string{kind}, words[:n]...)
}
