package config

// limitadorOptions returns the options about the limits of Limitador.
func limitadorOptions() []option {
	return []option{
		{name: "limitador-limits", def: "", kind: text{}, doc: "Limits file of Limitador in YAML, whose limits become policies lim.NAMESPACE.NAME. rls-port answers for the domains that are its namespaces, and http-port has the paths of Limitador. The file is loaded within a second after it has changed, and at once on SIGHUP and by RL.POLICY RELOAD. Commands cannot change these policies. They are of this server alone. See docs/limitador.md."},
		{name: "limitador-headers", def: "none", kind: choice{"none", "draft_version_03"}, mutable: true, doc: "Header fields of answers of rls-port for limits of Limitador: none, or X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset. It is RATE_LIMIT_HEADERS of Limitador."},
	}
}
