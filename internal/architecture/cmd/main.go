// Command cmd prints how large the packages of a module are: the measures that
// internal/architecture bounds.
//
// Usage: go run ./internal/architecture/cmd [ROOT]
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/cellserver/cellserver/internal/architecture"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "architecture:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout io.Writer) error {
	root := "."
	if len(args) > 0 {
		root = args[0]
	}
	measures, err := architecture.Measures(os.DirFS(root))
	if err != nil {
		return err
	}
	_, err = io.WriteString(stdout, architecture.Table(measures))
	return err
}
