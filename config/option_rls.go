package config

import (
	"errors"
	"strings"

	"github.com/cellserver/cellserver/env"
)

// serviceOptions returns the options about Envoy's rate limit service.
func serviceOptions() []option {
	return []option{
		{name: "rls-port", def: "0", kind: integer{0, 65535, ""}, doc: "TCP port for Envoy's rate limit service, over gRPC. 0 listens on no port. See docs/envoy.md."},
		{name: "rls-bind", def: "127.0.0.1 -::1", kind: words{}, doc: "Addresses of rls-port, as in bind. Protected mode holds for this port, too."},
		{name: "rls-tls", def: "no", kind: boolean{}, doc: "Encrypt rls-port, with the certificates of tls-port. tls-auth-clients and tls-auth-clients-user hold for this port, too."},
		{name: "rls-user", def: "default", kind: text{}, doc: "User of calls to rls-port without a certificate. The user default is one only while it needs no password. Any other user is one even if it has a password."},
		{name: "rls-max-connection-age", def: "86400", kind: integer{0, 31_536_000, "s"}, doc: "Time in seconds after which a connection to rls-port is asked to end, a tenth earlier or later. 0 means never."},
		{name: "rls-config", def: "", kind: text{}, doc: "File of envoyproxy/ratelimit in YAML, or directory of such files, whose limits become policies rls.DOMAIN.STEP. Files that change are loaded within a second, and at once on SIGHUP and by RL.POLICY RELOAD. Commands cannot change these policies. They are of this server alone."},
		{name: "rls-merge-domains", def: "no", kind: boolean{}, doc: "Let several files of rls-config have the same domain."},
		{name: "rls-charge", def: "always", kind: choice{"always", "together"}, mutable: true, doc: "What a request charges if it is over a limit: always all of its descriptors, or together only those that are over. It is STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT of ratelimit."},
		{name: "rls-shadow", def: "no", kind: boolean{}, mutable: true, doc: "Answer OK as a whole, whatever the limits say. It is SHADOW_MODE of ratelimit."},
		{name: "rls-quota", def: "no", kind: boolean{}, mutable: true, doc: "Treat all descriptors as if they had quota_mode. It is QUOTA_MODE of ratelimit."},
		{name: "rls-headers", def: "none", kind: headerNames{}, mutable: true, doc: "Header fields of answers of rls-port: none, ratelimit for RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset, or three other names. It is LIMIT_RESPONSE_HEADERS_ENABLED of ratelimit."},
		{name: "rls-metadata", def: "no", kind: boolean{}, mutable: true, doc: "Add dynamic_metadata to answers of rls-port. It is RESPONSE_DYNAMIC_METADATA of ratelimit."},
		{name: "rls-metrics", def: "none", kind: choice{"none", "ratelimit"}, doc: "What the metrics of the admin port show of the rules of rls-config besides policies: none, or the statistics of ratelimit by rule, under the names that its exporter for Prometheus has."},
		{name: "rls-config-required", def: "yes", kind: boolean{}, doc: "Start only if the files of rls-config exist and have no fault. With no the server starts, and rls-port answers 'no rate limit configuration loaded' until there are files without a fault. It is FORCE_START_WITHOUT_INITIAL_CONFIG of ratelimit."},
		{name: "rls-health-needs-rules", def: "no", kind: boolean{}, mutable: true, doc: "Answer health checks by NOT_SERVING and 500 while there is no rule, also with rls-config-required no and with files without a rule. It is HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED of ratelimit."},
	}
}

// headerNames is the kind of the option rls-headers.
type headerNames struct{}

// errHeaderNames is the error for a value that rls-headers cannot have.
var errHeaderNames = errors.New("argument must be none, ratelimit, or three names of header fields")

func (headerNames) parse(v string) (string, error) {
	all := strings.Fields(v)
	switch {
	case len(all) == 1 && (all[0] == "none" || all[0] == "ratelimit"):
	case len(all) != 3:
		return "", errHeaderNames
	}
	for _, name := range all {
		if strings.ContainsFunc(name, notOfToken) {
			return "", errHeaderNames
		}
	}
	return strings.Join(all, " "), nil
}

// notOfToken reports whether a name of a header field (a token of RFC 9110) must not have c.
func notOfToken(c rune) bool {
	alphanumeric := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
	return !alphanumeric && !strings.ContainsRune("!#$%&'*+-.^_`|~", c)
}

func (headerNames) hint() string { return "none|ratelimit|names" }

// of returns the names in v, which parse has accepted.
func (headerNames) of(v string) (names [3]string) {
	if v == "ratelimit" {
		return [3]string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"}
	}
	if all := strings.Fields(v); len(all) == len(names) {
		copy(names[:], all)
	}
	return names
}

// rateLimitService returns the options of Envoy's rate limit service.
func (c *Config) rateLimitService() env.RateLimitService {
	return env.RateLimitService{
		Together: c.Value("rls-charge") == "together", Shadow: c.Yes("rls-shadow"), Quota: c.Yes("rls-quota"), Metadata: c.Yes("rls-metadata"),
		Headers: headerNames{}.of(c.Value("rls-headers")), LimitsHeaders: c.Value("limitador-headers") != "none",
	}
}

// ServiceAddresses returns the addresses of the option rls-bind; none if rls-port is 0.
func (c *Config) ServiceAddresses() []string {
	if c.Value("rls-port") == "0" {
		return nil
	}
	return strings.Fields(c.Value("rls-bind"))
}
