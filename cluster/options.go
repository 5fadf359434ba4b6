package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	store "github.com/cellserver/cellserver/cluster/engine"
	"github.com/cellserver/cellserver/decide"
)

// The policies for what the engine does not decide in time.
const (
	// Closed answers with an error.
	Closed = "closed"
	// Opened admits.
	Opened = "open"
	// Local decides with limits of this server's own.
	Local = "local"
)

// Options are what a store is opened with. Only URL is needed.
type Options struct {
	// URL is where the engine is: see [store.ParseAddress].
	URL string
	// Prefix stands before every key in the engine; it has no braces.
	Prefix string
	// Timeout is within which every ask is answered. Default 50 ms.
	Timeout time.Duration
	// FailPolicies say by the prefix of the key what answers in the engine's place; the
	// longest prefix wins, and "" is all keys. Default Closed.
	FailPolicies map[string]string
	// Servers is how many servers there are, for the policy Local. Default 1.
	Servers int
	// HotKeys says by the prefix of the key whether a key that is asked about very often is
	// decided exactly or by leases: "exact", which is the default, or "lease".
	HotKeys map[string]string
	// HotLease is how long a lease lasts at most. Default 100 ms.
	HotLease time.Duration
	// DenialCache is how long a refusal may be repeated from memory; 0 never.
	DenialCache time.Duration
	// MaxValue is the most bytes of a value in the engine. Default 64 KiB.
	MaxValue int
	// MaxSkew is how far the engine's clock may jump without a line in the log. Default
	// 250 ms.
	MaxSkew time.Duration
	// MultiAcross says what becomes of an RL.MULTI with keys of several slots: "charge",
	// which is the default, or "refuse".
	MultiAcross string
	// Local decides an ask in a keyspace that is this server's own, for the policy Local.
	Local func(*decide.Ask)
	// Log is where the store says what an operator has to know. Default none.
	Log *slog.Logger
}

// complete checks the options and fills in what is missing.
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

// leased reports whether a key may be decided by leases; the longest prefix wins. It is nil
// if none may.
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

// rules are what an operator has chosen, by the prefix of the key. They are in the order in
// which they are looked at: the longest prefix first, and that of all keys last.
type rules []rule

type rule struct{ prefix, choice string }

// newRules makes rules of choices by prefix; def is for all other keys.
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

// of is what was chosen for a key.
func (all rules) of(key []byte) (choice string) {
	for _, r := range all {
		if choice = r.choice; len(key) >= len(r.prefix) && string(key[:len(r.prefix)]) == r.prefix {
			break
		}
	}
	return choice
}

// orElse gives what is not set a default.
func orElse[T int | time.Duration](v *T, def T) {
	if *v <= 0 {
		*v = def
	}
}
