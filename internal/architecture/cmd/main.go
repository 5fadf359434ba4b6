// Command cmd prints the measures of a module's packages, and writes the pages about its packages.
//
// Usage: go run ./internal/architecture/cmd [-packages | -picture | -write] [ROOT]
package main

import (
	"flag"
	"fmt"
	"io"
	"io/fs"
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
	list := flags.Bool("packages", false, "print the table of packages, docs/packages.md")
	picture := flags.Bool("picture", false, "print the picture of ARCHITECTURE.md")
	writeAll := flags.Bool("write", false, "write both into their files")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("reading flags: %w", err)
	}
	root := "."
	if flags.NArg() > 0 {
		root = flags.Arg(0)
	}
	switch {
	case *writeAll:
		return write(root)
	case *list, *picture:
		return show(os.DirFS(root), *picture, stdout)
	}
	measures, err := architecture.Measures(os.DirFS(root))
	if err != nil {
		return err
	}
	_, err = io.WriteString(stdout, architecture.Table(measures))
	return err
}

// show prints the picture if picture is true, else the table of packages.
func show(root fs.FS, picture bool, stdout io.Writer) error {
	packages, err := architecture.Packages(root)
	if err != nil {
		return err
	}
	modules, err := architecture.Modules(root)
	if err != nil {
		return err
	}
	text := architecture.PackagesPage(packages, modules)
	if picture {
		text = architecture.Picture(packages)
	}
	_, err = io.WriteString(stdout, text)
	return err
}

// write writes the generated pages of the module in root.
func write(root string) error {
	pages, err := architecture.Pages(os.DirFS(root))
	if err != nil {
		return err
	}
	for name, content := range pages {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o644); err != nil {
			return fmt.Errorf("writing a page: %w", err)
		}
	}
	return nil
}
