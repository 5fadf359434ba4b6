package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/document"
)

const policyDiffUsage = "usage: cellserver policy diff FILE [ADDRESS] [-h host] [-p port] [--user name] [--askpass] [--tls]"

// maxDump is the maximum size of the policies that a server may send. It suffices for a million
// overrides.
const maxDump = 256 << 20

// anyBounds are the bounds for a server with unknown options.
var anyBounds = policy.Bounds{LogMaxEntries: math.MaxInt64, MaxMembers: math.MaxInt64}

// diffPolicies runs cellserver policy diff. Its exit status is 1 if something would change, and 2
// after an error. err is the error in the options, if there is one.
func diffPolicies(f *connectionFlags, names []string, err error, w io.Writer) error {
	changes := 0
	switch {
	case err != nil:
		err = fmt.Errorf("%w\n%s", err, policyDiffUsage)
	case len(names) < 1 || len(names) > 2 || len(names) == 1 && !f.names():
		err = errors.New(policyDiffUsage)
	default:
		changes, err = compareWithServer(f, names[0], first(names[1:]), w)
	}
	switch {
	case err != nil:
		return exitStatus{code: 2, err: fmt.Errorf("policy diff: %w", err)}
	case changes > 0:
		return exitStatus{code: 1}
	}
	return nil
}

// compareWithServer prints what would change on a server with the policies of a file, and returns
// the number of changes.
func compareWithServer(f *connectionFlags, name, address string, w io.Writer) (int, error) {
	text, err := readPolicyFile(name)
	if err != nil {
		return 0, err
	}
	wanted, faults := document.Parse(name, text, anyBounds)
	if faults != nil {
		return 0, faults
	}
	options, err := f.options(address)
	if err != nil {
		return 0, err
	}
	options.ReadTimeout = 30 * time.Second // a server may have many policies
	client := redis.NewClient(options)
	defer client.Close() //nolint:errcheck // all replies have been read
	ctx := context.Background()
	current, err := dumpPolicies(ctx, client)
	if err != nil {
		return 0, explain(err, options)
	}
	changes := document.Diff(current, wanted)
	if len(changes) == 0 {
		_, err := fmt.Fprintln(w, "no changes")
		return 0, err
	}
	counts, err := countKeys(ctx, client, changes, current, wanted)
	if err != nil {
		return 0, explain(err, options)
	}
	return len(changes), printChanges(w, changes, counts)
}

// dumpPolicies reads the policies of a server.
func dumpPolicies(ctx context.Context, client *redis.Client) (*document.Document, error) {
	text, err := client.Do(ctx, "RL.POLICY", "DUMP", "FILE").Text()
	switch {
	case err != nil && strings.Contains(err.Error(), "unknown command"):
		return nil, fmt.Errorf("%w (the server has no policies: is it a cellserver that is new enough?)", err)
	case err != nil:
		return nil, err
	}
	d, faults := document.ParseUpTo("RL.POLICY DUMP", []byte(text), maxDump, anyBounds)
	return d, faults.Err()
}

// printChanges prints each change with the number of its keys, and how many changes there are.
func printChanges(w io.Writer, changes []document.Change, counts []int) error {
	var text []byte
	for i := range changes {
		text = changes[i].Append(text)
		text = fmt.Appendf(text, "    %s\n", counted(counts[i], "key", "keys"))
	}
	text = fmt.Appendf(text, "%s\n", counted(len(changes), "change", "changes"))
	_, err := w.Write(text)
	return err
}
