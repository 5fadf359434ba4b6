package architecture

import (
	"fmt"
	"io/fs"
)

//go:generate go run ./cmd -write ../..

// These are the files of the pages that [Pages] returns, relative to the module.
const (
	packagesPage     = "docs/packages.md"
	architecturePage = "ARCHITECTURE.md"
)

// Pages returns, by file, the text of those pages of the module in root that are generated from its
// packages.
func Pages(root fs.FS) (map[string]string, error) {
	packages, err := Packages(root)
	if err != nil {
		return nil, err
	}
	modules, err := Modules(root)
	if err != nil {
		return nil, err
	}
	page, err := fs.ReadFile(root, architecturePage)
	if err != nil {
		return nil, fmt.Errorf("reading a page: %w", err)
	}
	drawn, err := WithPicture(string(page), packages)
	if err != nil {
		return nil, fmt.Errorf("drawing the picture of %s: %w", architecturePage, err)
	}
	return map[string]string{packagesPage: PackagesPage(packages, modules), architecturePage: drawn}, nil
}
