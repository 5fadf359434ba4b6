package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/policy/convert"
)

// policyWords are the subcommands of cellserver policy.
var policyWords = []string{"check", "diff", "from-envoy", "from-limitador"}

func policyTool(args []string, w io.Writer) error { return (&connectionFlags{}).policyTool(args, w) }

// policyTool runs cellserver policy. f gets the options for connecting; a test may have set its
// dial.
func (f *connectionFlags) policyTool(args []string, w io.Writer) error {
	usage, _, _ := strings.Cut(manual["policy"], "\n\n")
	if len(args) == 0 {
		return errors.New(usage)
	}
	word := args[0]
	names, err := parseMixed(policyFlags(f), args[1:])
	if word == "diff" {
		return diffPolicies(f, names, err, w)
	}
	switch {
	case !slices.Contains(policyWords, word):
		return fmt.Errorf("policy: unknown command %q%s\n%s", word, config.DidYouMean(word, policyWords), usage)
	case err != nil:
		return fmt.Errorf("policy %s: %w\n%s", word, err, usage)
	case *f != (connectionFlags{}) || len(names) == 0:
		return errors.New(usage)
	case word == "check" && len(names) == 1:
		return checkPolicies(names[0], w)
	case word == "from-envoy":
		return convertPolicies(names, convert.FromEnvoy, w)
	case word == "from-limitador":
		return convertPolicies(names, convert.FromLimitador, w)
	}
	return errors.New(usage)
}

// policyFlags returns the options of policy diff.
func policyFlags(f *connectionFlags) *flag.FlagSet {
	flags := flag.NewFlagSet("policy", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	f.register(flags)
	return flags
}
