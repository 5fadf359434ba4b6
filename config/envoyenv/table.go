package envoyenv

import (
	"path/filepath"
	"strings"
)

// xds is the value of CONFIG_TYPE with which the program of tools/xds writes the files of rules.
const xds = "GRPC_XDS_SOTW"

// Rows returns the table of the variables that have an effect, in the order of the documentation. The caller may change
// the result.
func Rows() []Row {
	rows := []Row{
		one("http-port", Variable{"PORT", "8080"}, (*given).whole, ""),
		one("http-bind", Variable{"HOST", "0.0.0.0"}, (*given).addresses, ""),
		one("rls-port", Variable{"GRPC_PORT", "8081"}, (*given).whole, ""),
		one("rls-bind", Variable{"GRPC_HOST", "0.0.0.0"}, (*given).addresses, ""),
		checked(Variable{"GRPC_UDS", ""}, "must be empty: there is no gRPC on a Unix socket", func(g *given) {
			g.absent("GRPC_UDS", "rls-port is a TCP port: gRPC on a Unix socket is not supported")
		}),
		one("rls-max-connection-age", Variable{"GRPC_MAX_CONNECTION_AGE", "24h"}, (*given).seconds, "in seconds, rounded up"),
		{
			Option: "rls-config", Variables: []Variable{{"RUNTIME_ROOT", "/srv/runtime_data/current"}, {"RUNTIME_SUBDIRECTORY", ""}, {"RUNTIME_APPDIRECTORY", "config"}},
			Note: "the three joined: `ROOT/SUBDIRECTORY/APPDIRECTORY`; files in directories below it are not read",
			value: func(g *given) (string, bool) {
				return filepath.Join(g.text("RUNTIME_ROOT"), g.text("RUNTIME_SUBDIRECTORY"), g.text("RUNTIME_APPDIRECTORY")), true
			},
		},
		{
			Option: "rls-config-required", Variables: []Variable{{"FORCE_START_WITHOUT_INITIAL_CONFIG", "false"}, {"CONFIG_TYPE", "FILE"}},
			Note: "`no` if the first is true, or if `CONFIG_TYPE` is `" + xds + "`: then [a program of its own](#xds) writes the files",
			value: func(g *given) (string, bool) {
				return yes(!g.boolean("FORCE_START_WITHOUT_INITIAL_CONFIG") && g.word("CONFIG_TYPE", "FILE", xds) == "FILE"), true
			},
		},
		one("rls-health-needs-rules", Variable{"HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", "false"}, boolean, "a domain without a rule does not count"),
		one("rls-merge-domains", Variable{"MERGE_DOMAIN_CONFIG", "false"}, boolean, ""),
		{
			Option:    "rls-charge",
			Variables: []Variable{{"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", "false"}}, Note: "true is `together`, false `always`",
			value: func(g *given) (string, bool) {
				if g.boolean("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT") {
					return "together", true
				}
				return "always", true
			},
		},
		one("rls-shadow", Variable{"SHADOW_MODE", "false"}, boolean, ""),
		one("rls-quota", Variable{"QUOTA_MODE", "false"}, boolean, ""),
		one("rls-metadata", Variable{"RESPONSE_DYNAMIC_METADATA", "false"}, boolean, ""),
		{
			Option: "rls-headers", Variables: []Variable{
				{"LIMIT_RESPONSE_HEADERS_ENABLED", "false"},
				{"LIMIT_LIMIT_HEADER", "RateLimit-Limit"},
				{"LIMIT_REMAINING_HEADER", "RateLimit-Remaining"},
				{"LIMIT_RESET_HEADER", "RateLimit-Reset"},
			},
			Note:  "the three names if the first is true, and otherwise `none`",
			value: headers,
		},
		one("metrics-near-limit", Variable{"NEAR_LIMIT_RATIO", "0.8"}, (*given).percent, "as a percentage from 1 to 99"),
		{
			Option: "rls-metrics", Variables: []Variable{{"DISABLE_STATS", "false"}}, Note: "`none` if it is true, otherwise `ratelimit`: see [Statistics](#statistics)",
			value: func(g *given) (string, bool) {
				if g.boolean("DISABLE_STATS") {
					return "none", true
				}
				return "ratelimit", true
			},
		},
		one("loglevel", Variable{"LOG_LEVEL", "WARN"}, (*given).level, "trace and debug are `debug`, info `notice`, warn and error `warning`, fatal and panic `nothing`"),
	}
	return append(append(rows, tlsRows()...), fixed("port", "0"), fixed("protected-mode", "no"))
}

// tlsRows returns the rows about TLS of the gRPC port. They have an effect only with GRPC_SERVER_USE_TLS.
func tlsRows() []Row {
	const use = "GRPC_SERVER_USE_TLS"
	only := func(option, name, note string) Row {
		return Row{Option: option, Variables: []Variable{{name, ""}}, Note: note, value: func(g *given) (string, bool) {
			return g.text(name), g.boolean(use) && g.text(name) != ""
		}}
	}
	return []Row{
		one("rls-tls", Variable{use, "false"}, boolean, "the variables below count only if it is true"),
		only("tls-cert-file", "GRPC_SERVER_TLS_CERT", "the port sees new files on SIGHUP"),
		only("tls-key-file", "GRPC_SERVER_TLS_KEY", ""),
		only("tls-ca-cert-file", "GRPC_CLIENT_TLS_CACERT", "clients need a certificate of this authority; those of the system do not count"),
		{
			Option: "tls-auth-clients", Variables: []Variable{{"GRPC_CLIENT_TLS_CACERT", ""}}, Note: "`yes` if it is set, otherwise `no`",
			value: func(g *given) (string, bool) { return yes(g.text("GRPC_CLIENT_TLS_CACERT") != ""), g.boolean(use) },
		},
		checked(Variable{"GRPC_CLIENT_TLS_SAN", ""}, "must be empty: use `tls-auth-clients-user` and users", func(g *given) {
			if g.boolean(use) {
				g.absent("GRPC_CLIENT_TLS_SAN", "the name of a client is not checked so: use tls-auth-clients-user, and users with permissions")
			}
		}),
	}
}

// headers returns the value of the option rls-headers.
func headers(g *given) (string, bool) {
	if !g.boolean("LIMIT_RESPONSE_HEADERS_ENABLED") {
		return "none", true
	}
	names := make([]string, 0, 3)
	for _, variable := range []string{"LIMIT_LIMIT_HEADER", "LIMIT_REMAINING_HEADER", "LIMIT_RESET_HEADER"} {
		name := g.text(variable)
		if len(strings.Fields(name)) != 1 {
			g.fault(variable, "%q is not the name of a header field", name)
		}
		names = append(names, name)
	}
	return strings.Join(names, " "), true
}

// boolean returns yes or no for a variable that is true or false.
func boolean(g *given, name string) string { return yes(g.boolean(name)) }

// one returns the row of an option whose value is the value of the variable v, as read returns it.
func one(option string, v Variable, read func(g *given, name string) string, note string) Row {
	return Row{Option: option, Variables: []Variable{v}, Note: note, value: func(g *given) (string, bool) { return read(g, v.Name), true }}
}

// checked returns the row of a variable that decides no option. check records its faults.
func checked(v Variable, note string, check func(g *given)) Row {
	return Row{Variables: []Variable{v}, Note: note, value: func(g *given) (string, bool) {
		check(g)
		return "", false
	}}
}

// fixed returns the row of an option that no variable decides.
func fixed(option, value string) Row {
	return Row{Option: option, Note: "always `" + value + "`", value: func(*given) (string, bool) { return value, true }}
}
