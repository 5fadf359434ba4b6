// Command crosscheck finds Go code that does not compile for other platforms.
//
// It checks the types of all packages and tests, with the tag real, below each directory that an
// argument names. It generates no code, and so takes seconds where a compiler takes minutes.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	platforms := flag.String("platforms", "", "the platforms as GOOS/GOARCH, separated by spaces")
	flag.Parse()
	failed := false
	for _, platform := range strings.Fields(*platforms) {
		for _, dir := range flag.Args() {
			faults, err := check(dir, platform)
			if err != nil {
				fmt.Fprintln(os.Stderr, "crosscheck:", err)
				os.Exit(1)
			}
			fmt.Fprintf(os.Stderr, "%s in %s: %d errors\n", platform, dir, len(faults))
			for _, fault := range faults {
				fmt.Fprintln(os.Stderr, fault)
				failed = true
			}
		}
	}
	if failed {
		os.Exit(1)
	}
}

// check returns the errors of the packages and tests below dir when they are compiled for platform,
// without cgo. err says that the packages could not be listed.
func check(dir, platform string) (faults []packages.Error, err error) {
	system, arch, found := strings.Cut(platform, "/")
	if !found {
		return nil, fmt.Errorf("%q is not a platform as GOOS/GOARCH", platform)
	}
	roots, err := packages.Load(&packages.Config{
		Mode:       packages.LoadAllSyntax,
		Dir:        dir,
		Env:        append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0"),
		BuildFlags: []string{"-tags=real"},
		Tests:      true,
	}, "./...")
	if err != nil {
		return nil, fmt.Errorf("listing the packages of %s for %s: %w", dir, platform, err)
	}
	if len(roots) == 0 {
		return nil, fmt.Errorf("%s has no packages", dir)
	}
	packages.Visit(roots, nil, func(p *packages.Package) { faults = append(faults, p.Errors...) })
	return faults, nil
}
