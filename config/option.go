package config

// option is one setting. Flags, environment, file, CONFIG GET and SET, --help and the sample
// file all use this one definition.
type option struct {
	name string
	// alias is an older name of the same option, or "".
	alias string
	// def is the default, as it is written in a file.
	def string
	// kind checks and normalises a value.
	kind kind
	// mutable options can be changed by CONFIG SET.
	mutable bool
	// secret values are shown by CONFIG GET but never logged.
	secret bool
	// show is what CONFIG GET shows of a value with a password in it; nil shows all.
	show func(value string) string
	doc  string
}
