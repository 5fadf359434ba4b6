// Command cmd prints how large the packages of a module are and how their files
// refer to each other: the measures that internal/architecture bounds.
//
// Usage: go run ./internal/architecture/cmd [-lower] [-upward PACKAGE] [ROOT]
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cellserver/cellserver/internal/architecture"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "architecture:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("architecture", flag.ContinueOnError)
	upward := flags.String("upward", "", "list the references of a `package` that point up")
	lower := flags.Bool("lower", false, "lower the exceptions to what is needed now")
	if err := flags.Parse(args); err != nil {
		return err
	}
	root := "."
	if flags.NArg() > 0 {
		root = flags.Arg(0)
	}
	measures, err := architecture.Measures(os.DirFS(root))
	if err != nil {
		return err
	}
	if *lower {
		if err := lowerExceptions(root, measures); err != nil {
			return err
		}
	}
	if *upward == "" {
		_, err := io.WriteString(stdout, architecture.Table(measures))
		return err
	}
	for _, m := range measures {
		if m.Package != *upward {
			continue
		}
		for _, r := range m.Upward {
			fmt.Fprintln(stdout, r)
		}
	}
	return nil
}

// lowerExceptions writes the exceptions of the module in folder root again.
func lowerExceptions(root string, measures []architecture.Measure) error {
	name := filepath.Join(root, filepath.FromSlash(architecture.ExceptionsFile))
	old, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	exceptions, err := architecture.ReadExceptions(string(old))
	if err != nil {
		return err
	}
	return os.WriteFile(name, []byte(exceptions.Lowered(measures).String()), 0o644)
}
