package main

import (
	"io"

	"github.com/cellserver/cellserver/config/envoyenv"
)

// serviceTool is the subcommand that runs a server in the place of envoyproxy/ratelimit.
const serviceTool = "ratelimit"

// serveRateLimit runs a server whose presets follow from the environment variables of ratelimit, and returns the exit
// status. args are the arguments of the process, which begin with serviceTool.
func serveRateLimit(args, environ []string, stdout, stderr io.Writer) int {
	options := args[1:]
	if asksForHelp(serviceTool, options) {
		return report(stderr, help([]string{serviceTool}, stdout))
	}
	presets, idle, err := envoyenv.Translate(environ)
	if err != nil {
		return fail(stderr, err)
	}
	return serve(invocation{args, options, presets, idle}, environ, stderr)
}
