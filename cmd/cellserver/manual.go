package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cellserver/cellserver/server"
)

const doctorUsage = "usage: cellserver doctor redis://[user:password@]host:port [--sample n] [--timeout d]"

// manual says of each tool how it is called and what it does.
var manual = map[string]string{
	"check-aof": `usage: cellserver check-aof DIR [--fix]

Checks the files of a stopped server. DIR is dir/appenddirname.
  --fix   cut the incomplete end that a crash leaves
`,
	"dump": `usage: cellserver dump DIR

Prints the files of a stopped server as JSON, one line for each entry or effect, with keys
and values. DIR is dir/appenddirname.
`,
	"import": `usage: cellserver import ADDRESS DIR [--match pattern] [--db n] [--dry-run]

Copies the keys of redis-cell from a running Redis or Valkey into DIR, the
dir/appenddirname of a stopped server. It counts and skips all other keys. ADDRESS is ` + addressForms + `.
  --match pattern   only keys that match this pattern
  --db n            only this database
  --dry-run         only say what would be done
`,
	"export": `usage: cellserver export ADDRESS DIR [--match pattern] [--db n] [--dry-run]

Copies the keys of CL.THROTTLE from DIR back to a running Redis with redis-cell. The
options are those of import.
`,
	"copy": `usage: cellserver copy DIR ADDRESS, or back: cellserver copy ADDRESS DIR
         [--match pattern] [--db n] [--store-prefix cs:] [--replace] [--dry-run]

Copies the states of all limiters from DIR, the dir/appenddirname of a stopped server, into
the store at ADDRESS, or back. They keep their instants. What is newer on the other side
stays. Other keys are counted and skipped. ADDRESS is that of --store: valkey://host:port,
several hosts with commas, valkeys:// for TLS.
  --match pattern      only keys that match this pattern
  --db n               the database of DIR (0); a store has one
  --store-prefix text  what stands before every key in the store (cs:)
  --replace            overwrite what is newer, too
  --dry-run            only say what would be done
`,
	"doctor": doctorUsage + `

Examines a running Redis or Valkey and says what moves to cellserver, what does not, and
what to do. It reads INFO, CONFIG GET, the commands that were called, modules, and a sample
of the keys. It changes nothing on the server, and uses one connection half of the time.
ADDRESS is ` + addressForms + `.
  --sample n    examine this many keys (10000)
  --timeout d   stop after this time (30s)
`,
}

// unknownOption names an option that a tool does not know, nil if there is none.
func unknownOption(tool string, given []string, known ...string) error {
	for _, o := range given {
		if !slices.Contains(known, o) {
			usage, _, _ := strings.Cut(manual[tool], "\n")
			return fmt.Errorf("%s: unknown option %q%s\n%s", tool, o, server.DidYouMean(o, known), usage)
		}
	}
	return nil
}
