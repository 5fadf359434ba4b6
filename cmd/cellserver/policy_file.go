package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/convert"
	"github.com/cellserver/cellserver/policy/document"
)

// readPolicyFile reads a file, or standard input if the name is "-". It reads at most one byte more
// than a document may have, so that document.Parse reports a longer text.
func readPolicyFile(name string) ([]byte, error) {
	file := os.Stdin
	if name != "-" {
		var err error
		if file, err = os.Open(name); err != nil {
			return nil, err
		}
		defer file.Close()
	}
	return io.ReadAll(io.LimitReader(file, document.MaxText+1))
}

// checkPolicies prints all faults of a file on w, since they are the requested result; the exit
// status is then 1. Without a fault, it prints the numbers of policies and overrides.
func checkPolicies(name string, w io.Writer) error {
	text, err := readPolicyFile(name)
	if err != nil {
		return err
	}
	d, faults := document.Parse(name, text, policy.Bounds{})
	if faults != nil {
		if _, err := fmt.Fprintln(w, strings.Map(printable, faults.Error())); err != nil {
			return err
		}
		return exitStatus{code: 1}
	}
	overrides := 0
	for i := range d.Policies {
		overrides += len(d.Policies[i].Overrides)
	}
	_, err = fmt.Fprintf(w, "%s: ok, %s, %s\n", name, counted(len(d.Policies), "policy", "policies"), counted(overrides, "override", "overrides"))
	return err
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// convertPolicies prints the policies that result from files of other programs.
func convertPolicies(names []string, from func([]convert.File) (*convert.Result, document.Faults), w io.Writer) error {
	files := make([]convert.File, len(names))
	for i, name := range names {
		text, err := readPolicyFile(name)
		if err != nil {
			return err
		}
		files[i] = convert.File{Name: name, Text: text}
	}
	r, faults := from(files)
	if faults != nil {
		return faults
	}
	_, err := w.Write(r.Append(nil))
	return err
}
