package remote

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/cellserver/cellserver/decide"
	store "github.com/cellserver/cellserver/remote/engine"
)

// These are the policies for asks that the engine does not decide in time. They are the values of
// [Options.FailPolicies].
const (
	// Closed answers the ask with an error.
	Closed = "closed"
	// Opened admits the ask.
	Opened = "open"
	// Local decides the ask with this server's share of the limit, in a keyspace of this server.
	Local = "local"
)

// Options configures a store. Only URL is required.
type Options struct {
	// URL is the address of the engine: see [store.ParseAddress].
	URL string
	// Prefix is put before every key in the engine. It must not contain braces.
	Prefix string
	// Hidden is the beginning of keys, after Prefix, that belong to the servers and not to their clients. Asks about
	// all keys leave them out, and asks about one of them are answered as if another program had written its value.
	// With "" no key is hidden.
	Hidden string
	// Timeout is the time after which the policy answers an ask that has no answer yet. An ask
	// about all keys may take longer. The default is 50 ms.
	Timeout time.Duration
	// FailPolicies has, by the prefix of the key, the policy that answers in place of the engine:
	// Closed, Opened or Local. The longest matching prefix applies, and "" matches all keys. The
	// default is Closed.
	FailPolicies map[string]string
	// Servers is the number of servers that share the limits, for the policy Local. The default is
	// 1.
	Servers int
	// HotKeys says, by the prefix of the key, how hot keys are decided: "exact", which is the
	// default, decides each call in the engine; "lease" decides calls from units that were
	// charged in advance.
	HotKeys map[string]string
	// HotLease is the maximum duration of a lease. The default is 100 ms.
	HotLease time.Duration
	// DenialCache is the time for which a refusal may be repeated from memory, without the engine;
	// 0 means never.
	DenialCache time.Duration
	// MaxValue is the maximum number of bytes of a value in the engine. The default is 64 KiB.
	MaxValue int
	// MaxSkew is the largest jump of the engine's clock that is not logged and counted. The default
	// is 250 ms.
	MaxSkew time.Duration
	// MultiAcross says what happens to an RL.MULTI with keys in several slots: "charge", which is
	// the default, writes each key separately; "refuse" answers with an error.
	MultiAcross string
	// Local decides an ask in a keyspace of this server. The policy Local requires it. Several
	// goroutines may call it at once.
	Local func(*decide.Ask)
	// Log gets messages for operators. The default is no log.
	Log *slog.Logger
}

// complete checks the options, sets the defaults and returns the address that URL names. It
// returns an error for an invalid option.
func (o *Options) complete() (*store.Address, error) {
	at, err := store.ParseAddress(o.URL)
	if err != nil {
		return nil, err
	}
	for prefix, word := range o.FailPolicies {
		switch {
		case word != Closed && word != Opened && word != Local:
			return nil, fmt.Errorf("unknown policy %q for keys with prefix %q", word, prefix)
		case word == Local && o.Local == nil:
			return nil, errors.New("the policy local needs a keyspace")
		}
	}
	for prefix, word := range o.HotKeys {
		if word != "exact" && word != "lease" {
			return nil, fmt.Errorf("unknown way %q for hot keys with prefix %q", word, prefix)
		}
	}
	if o.MultiAcross != "" && o.MultiAcross != "charge" && o.MultiAcross != "refuse" {
		return nil, fmt.Errorf("unknown way %q for RL.MULTI across slots", o.MultiAcross)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	orElse(&o.Timeout, 50*time.Millisecond)
	orElse(&o.HotLease, 100*time.Millisecond)
	orElse(&o.MaxSkew, 250*time.Millisecond)
	orElse(&o.MaxValue, 64<<10)
	orElse(&o.Servers, 1)
	return at, nil
}

// leased returns a function that reports whether a key may be decided by leases. The longest
// prefix in HotKeys counts. The result is nil if no key may.
func (o *Options) leased() func(key []byte) bool {
	any := false
	for _, way := range o.HotKeys {
		any = any || way == "lease"
	}
	if !any {
		return nil
	}
	ways := newRules(o.HotKeys, "exact")
	return func(key []byte) bool { return ways.of(key) == "lease" }
}

// rules has the choices of an operator by the prefix of the key, in the order in which they are
// tried: the longest prefix first, and the rule for all keys last.
type rules []rule

// rule is a choice of the operator for the keys that begin with prefix.
type rule struct{ prefix, choice string }

// newRules returns rules for the choices, by prefix. If choices has none for the prefix "", def is
// the choice for all other keys.
func newRules(choices map[string]string, def string) rules {
	var all rules
	for prefix, choice := range choices {
		all = append(all, rule{prefix, choice})
	}
	if _, ok := choices[""]; !ok {
		all = append(all, rule{"", def})
	}
	slices.SortFunc(all, func(a, b rule) int { return cmp.Compare(len(b.prefix), len(a.prefix)) })
	return all
}

// FailPolicy returns the policy for key, [Closed], [Opened] or [Local], under the option fail-policy with the value
// byPrefix. It is the choice for the longest prefix of key; Closed if byPrefix has no prefix of key.
func FailPolicy(byPrefix map[string]string, key []byte) string {
	return newRules(byPrefix, Closed).of(key)
}

func (all rules) of(key []byte) (choice string) {
	for _, r := range all {
		if choice = r.choice; hasPrefix(key, r.prefix) {
			break
		}
	}
	return choice
}

func orElse[T int | time.Duration](v *T, def T) {
	if *v <= 0 {
		*v = def
	}
}
