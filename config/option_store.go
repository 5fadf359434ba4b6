package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/cellserver/cellserver/remote/engine"
)

// storeOptions returns the options about an external store.
func storeOptions() []option {
	return []option{
		{name: "store", def: "", kind: storeURL{}, secret: true, show: MaskURL, doc: "Keep limits in the Valkey or Redis at this URL, and not in this server: valkey://user:password@host:port,host:port/ or redis://, and valkeys:// or rediss:// with TLS. See docs/scale-out.md. Empty keeps them here."},
		{name: "store-prefix", def: "cs:", kind: storePrefix{}, doc: "Prefix of the keys in the store. It has no braces, so that {tags} of keys choose their slot."},
		{name: "store-timeout", def: "50", kind: integer{1, 60_000, "ms"}, doc: "Time in milliseconds that the server waits for the store. After it, fail-policy decides."},
		{name: "fail-policy", def: "closed", kind: failPolicies, mutable: true, doc: "Who decides while the store is away: closed replies with the error -UNAVAILABLE, open allows every call, local decides in this server with the limit divided by store-servers. A prefix in front applies the choice to keys that begin with it; the longest matching prefix counts."},
		{name: "ready-without-store", def: "no", kind: boolean{}, mutable: true, doc: "Whether /readyz replies with 200 while the store is away, if fail-policy is open or local for all keys. Otherwise it replies with 503."},
		{name: "store-servers", def: "1", kind: storeServers{}, mutable: true, doc: "Number of servers that share the store, by which fail-policy local divides limits. auto is the number of live servers that the store has last shown."},
		{name: "hot-keys", def: "exact", kind: hotKeys, doc: "How a key with very many calls is decided: exact asks the store each time, lease takes a part of the limit in advance and decides calls in memory until that is spent. A prefix in front applies the choice to keys that begin with it."},
		{name: "hot-lease", def: "100", kind: integer{1, 10_000, "ms"}, doc: "Longest time in milliseconds for which a lease is taken. It is also at most a quarter of the time in which a limit refills."},
		{name: "denial-cache", def: "100", kind: integer{0, 60_000, "ms"}, doc: "Longest time in milliseconds for which a denial is repeated without the store. 0 asks each time."},
		{name: "store-max-value", def: "64kb", kind: size{1 << 10, 16 << 20}, doc: "Longest value in the store, which bounds SW.ALLOW LOG and the leases of CC.ACQUIRE."},
		{name: "store-max-skew", def: "250", kind: integer{1, 3_600_000, "ms"}, doc: "Least jump of the store's clock, in milliseconds, that is logged."},
		{name: "multi-across-slots", def: "charge", kind: choice{"charge", "refuse"}, doc: "What RL.MULTI, and RL.USE with several policies, do with keys in several slots of a cluster: charge each slot by itself, and give the units back if one denies, or refuse the call with -CROSSSLOT."},
	}
}

// storeURL is the kind of the URL of a Valkey or Redis. An error never repeats the value, because
// it may contain a password.
type storeURL struct{}

func (storeURL) parse(v string) (string, error) {
	if v == "" {
		return "", nil
	}
	if _, err := engine.ParseAddress(v); err != nil {
		return "", errors.New("argument must be the URL of a store: " + err.Error())
	}
	return text{}.parse(v)
}

func (storeURL) hint() string { return "url" }

// masked is the text that is shown instead of a password.
const masked = "***"

// MaskURL returns v, a URL of a store, with *** in place of its passwords, both in the user part
// and in parameters. For a malformed URL the result may lack more than the passwords. A v without a
// scheme is returned unchanged.
func MaskURL(v string) string {
	scheme, rest, ok := strings.Cut(v, "://")
	if !ok {
		return v
	}
	user := ""
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		name, _, secret := strings.Cut(rest[:at], ":")
		if user, rest = name, rest[at:]; secret {
			user += ":" + masked
		}
	}
	rest, query, asked := strings.Cut(rest, "?")
	if asked {
		rest += "?" + maskQuery(query)
	}
	return scheme + "://" + user + rest
}

// maskQuery returns query, the parameters of a URL, with passwords masked.
func maskQuery(query string) string {
	pairs := strings.Split(query, "&")
	for i, p := range pairs {
		name, _, _ := strings.Cut(p, "=")
		if plain, err := url.QueryUnescape(name); err != nil || strings.Contains(strings.ToLower(plain), "pass") {
			pairs[i] = name + "=" + masked
		}
	}
	return strings.Join(pairs, "&")
}

// storePrefix is the kind of store-prefix, the prefix of keys in the store: 1 to maxStorePrefix
// bytes of text without braces.
type storePrefix struct{}

func (storePrefix) parse(v string) (string, error) {
	switch {
	case v == "" || len(v) > maxStorePrefix:
		return "", fmt.Errorf("argument must be 1 to %d characters: the store may have keys of others", maxStorePrefix)
	case strings.ContainsAny(v, "{}"):
		return "", errors.New("argument must have no braces: the tags of keys choose their slot")
	}
	return text{}.parse(v)
}

func (storePrefix) hint() string { return "text" }

// maxStorePrefix is the maximum length, in bytes, of the prefix, which is added to each key.
const maxStorePrefix = 64

// storeServers is the kind of store-servers: a number, or auto.
type storeServers struct{}

func (storeServers) parse(v string) (string, error) {
	if strings.EqualFold(v, autoServers) {
		return autoServers, nil
	}
	return integer{1, 1 << 20, ""}.parse(v)
}

func (storeServers) hint() string { return "number|" + autoServers }

// autoServers is the value of store-servers that stands for the number of live servers, by their
// records in the store.
const autoServers = "auto"

// byPrefix is the kind of an option that is one of some words for all keys, and may be another of
// these words for keys with a prefix. The value is a word, followed by pairs of a prefix and a
// word.
type byPrefix []string

func (k byPrefix) parse(v string) (string, error) {
	all, pairs, err := k.split(v)
	if err != nil {
		return "", err
	}
	fields := make([]string, 0, 1+2*len(pairs))
	fields = append(fields, all)
	for _, p := range pairs {
		fields = append(fields, p[0], p[1])
	}
	return strings.Join(fields, " "), nil
}

// These are the kinds of fail-policy and hot-keys.
var (
	failPolicies = byPrefix{"closed", "open", "local"}
	hotKeys      = byPrefix{"exact", "lease"}
)

func (k byPrefix) hint() string { return "[prefix] " + strings.Join(k, "|") + " ..." }

// split returns the word in v for all keys, and the pairs of a prefix and a word. If v has no word
// for all keys, all is the first word of k.
func (k byPrefix) split(v string) (all string, pairs [][2]string, err error) {
	if _, err := (text{}).parse(v); err != nil {
		return "", nil, err
	}
	for fields := strings.Fields(v); len(fields) > 0; {
		word, err := choice(k).parse(fields[0])
		if err == nil {
			if all != "" {
				return "", nil, errors.New("argument has two choices for all keys")
			}
			all, fields = word, fields[1:]
			continue
		}
		if len(fields) < 2 {
			return "", nil, err
		}
		if word, err = choice(k).parse(fields[1]); err != nil {
			return "", nil, err
		}
		if slices.ContainsFunc(pairs, func(p [2]string) bool { return p[0] == fields[0] }) {
			return "", nil, fmt.Errorf("argument names the prefix %q twice", fields[0])
		}
		pairs, fields = append(pairs, [2]string{fields[0], word}), fields[2:]
	}
	if all == "" {
		all = k[0]
	}
	return all, pairs, nil
}

// rules returns the words in v, which parse has accepted, by prefix. The prefix "" is for all keys.
func (k byPrefix) rules(v string) map[string]string {
	all, pairs, _ := k.split(v) // there is no error, because the value was accepted before
	rules := map[string]string{"": all}
	for _, p := range pairs {
		rules[p[0]] = p[1]
	}
	return rules
}
