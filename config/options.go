package config

import "slices"

// options lists every setting, in the order of the sample file. An option with the meaning
// of one of Redis has its name.
func options() []option {
	return slices.Concat(
		networkOptions(),
		tlsOptions(),
		userOptions(),
		clientOptions(),
		memoryOptions(),
		persistenceOptions(),
		observeOptions(),
		storeOptions(),
		adminOptions(),
		metricsOptions(),
		processOptions(),
	)
}
