package server

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/figure"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote"
)

// remoteInfo returns the fields of the section store of INFO.
func (s *Server) remoteInfo() []env.InfoField {
	info := s.remote.Info()
	fields := []env.InfoField{
		{Name: "store_url", Value: config.MaskURL(s.config.Value("store"))},
		{Name: "store_prefix", Value: s.config.Value("store-prefix")},
		{Name: "store_kind", Value: info.Kind},
		{Name: "store_fault", Value: info.Fault},
	}
	for _, f := range info.Figures {
		fields = append(fields, env.InfoField{Name: "store_" + f.Name, Value: decimal(f)})
	}
	fields = append(fields, s.recordFields()...)
	fields = append(fields, s.serverFields()...)
	fields = append(fields, policyFields(info.Policy)...)
	for i, n := range info.Nodes {
		fields = append(fields, env.InfoField{Name: "store_node" + strconv.Itoa(i), Value: describeNode(n)})
	}
	return fields
}

// recordFields returns the fields about the records of policies in the store.
func (s *Server) recordFields() []env.InfoField {
	r, age, lag := s.policies.records, "-1", "-1"
	if read, is := s.policies.age(); is {
		age = strconv.FormatInt(limit.MillisUp(read), 10)
	}
	if took, is := r.Lag(); is {
		lag = strconv.FormatInt(limit.MillisUp(took), 10)
	}
	return []env.InfoField{
		{Name: "store_policies_version", Value: r.Version().String()},
		{Name: "store_policies_age_ms", Value: age},
		{Name: "store_policies_fault", Value: s.policies.why()},
		{Name: "store_policies_unreadable", Value: strconv.Itoa(s.policies.registry.UnreadablePolicies())},
		{Name: "store_changes_lost", Value: strconv.FormatInt(r.Lost(), 10)},
		{Name: "store_policies_unfit", Value: strconv.Itoa(s.policies.registry.Unfit())},
		{Name: "store_policies_subscribed", Value: strconv.Itoa(int(figure.Bit(r.Subscribed())))},
		{Name: "store_policies_lag_ms", Value: lag},
		{Name: "store_changes_unconfirmed", Value: strconv.FormatInt(r.Unconfirmed(), 10)},
		{Name: "store_confirm_fault", Value: r.ConfirmFault()},
	}
}

func decimal(f remote.Figure) string { return strconv.FormatFloat(f.Value, 'f', -1, 64) }

// policyFields returns a field for each fail-policy, with the number of calls that it has answered,
// by reason.
func policyFields(counts []remote.PolicyCount) (fields []env.InfoField) {
	for _, policy := range config.FailPolicyNames() {
		var reasons []string
		var sum int64
		for _, c := range counts {
			if c.Policy == policy {
				sum += c.N
				reasons = append(reasons, fmt.Sprintf(",%s=%d", c.Reason, c.N))
			}
		}
		fields = append(fields, env.InfoField{Name: "store_policy_" + policy, Value: fmt.Sprintf("calls=%d%s", sum, strings.Join(reasons, ""))})
	}
	return fields
}

// describeNode returns the description of a master of the store, in the form of INFO commandstats.
func describeNode(n remote.NodeInfo) string {
	var b strings.Builder
	fmt.Fprintf(&b, "addr=%s,version=%s,state=%s,reason=%s", n.Addr, n.Version, n.State, n.Reason)
	for _, f := range n.Figures {
		fmt.Fprintf(&b, ",%s=%s", f.Name, decimal(f))
	}
	return b.String()
}
