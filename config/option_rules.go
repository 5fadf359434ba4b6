package config

// ruleOptions returns the options about the start with the files of rls-config.
func ruleOptions() []option {
	return []option{
		{name: "rls-config-required", def: "yes", kind: boolean{}, doc: "Start only if the files of rls-config exist and have no fault. With no the server starts, and rls-port answers 'no rate limit configuration loaded' until there are files without a fault. It is FORCE_START_WITHOUT_INITIAL_CONFIG of ratelimit."},
	}
}
