// Command generate writes the generated pages into the directory of the project, which is its
// argument.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/cellserver/cellserver/tools/docgen"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "generate:", err) // an error cannot be reported anywhere
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("one argument expected, the folder of the project")
	}
	pages, err := docgen.Pages(args[0])
	if err != nil {
		return err
	}
	for name, content := range pages {
		if err := os.WriteFile(filepath.Join(args[0], name), []byte(content), 0o644); err != nil {
			return fmt.Errorf("writing a page: %w", err)
		}
	}
	return nil
}
