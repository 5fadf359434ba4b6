package main

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// module is a third-party part of the program.
type module struct {
	path, version, sum string
	// licences are the files with licence terms, which must be part of the archive.
	licences []file
	// licence is the SPDX expression of the licence, such as "MIT" or "Apache-2.0 AND MIT".
	licence string
	// declared is the same expression as licence, except that it lists all alternatives if the
	// authors offer a choice.
	declared string
}

// choices are the modules whose authors offer a choice of licences, in files without a licence's
// usual name: the declared expression, and the file with the licence that this project has chosen.
var choices = map[string]struct{ declared, chosen string }{
	"github.com/golang/freetype": {"FTL OR GPL-2.0-or-later", "licenses/ftl.txt"},
}

// standardLibrary is the name of the standard library in a bill of materials.
const standardLibrary = "stdlib"

// modulesOf returns the modules that the program at path contains, without this project: those in
// its build information, and the standard library.
func (r *release) modulesOf(ctx context.Context, p *program, path string) ([]module, error) {
	built, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, err
	}
	goRoot, err := output(ctx, r.root, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	std := module{path: standardLibrary, version: strings.TrimPrefix(built.GoVersion, "go")}
	if err := std.readLicences(strings.TrimSpace(string(goRoot))); err != nil {
		return nil, err
	}
	modules := []module{std}
	for _, dep := range built.Deps {
		if dep.Path == ownModule {
			continue // a program that is a separate module is compiled from packages of the server's module
		}
		m, err := r.download(ctx, p, dep)
		if err != nil {
			return nil, err
		}
		modules = append(modules, m)
	}
	return modules, nil
}

// download returns a module with the licences in Go's module cache, into which it downloads the
// module if necessary. It returns an error if the checksum is not that with which the program was
// compiled.
func (r *release) download(ctx context.Context, p *program, dep *debug.Module) (module, error) {
	if dep.Replace != nil {
		dep = dep.Replace
	}
	said, err := output(ctx, filepath.Join(r.root, p.module), "go", "mod", "download", "-json", dep.Path+"@"+dep.Version)
	if err != nil {
		return module{}, err
	}
	var where struct{ Dir, Sum string }
	if err := json.Unmarshal(said, &where); err != nil {
		return module{}, err
	}
	if where.Sum != dep.Sum {
		return module{}, fmt.Errorf("%s %s: the program was compiled from %s, and here is %s", dep.Path, dep.Version, dep.Sum, where.Sum)
	}
	m := module{path: dep.Path, version: dep.Version, sum: dep.Sum}
	return m, m.readLicences(where.Dir)
}

// licenceName matches the names of files with licence terms.
var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|unlicense)`)

// permission matches the names of files that accompany a licence but are not licences. SPDX has no
// identifiers for them.
var permission = regexp.MustCompile(`(?i)^(notice|patents)`)

// readLicences reads the files with licence terms in a directory. It returns an error if none of
// them is a known licence, because then the module must not be published.
func (m *module) readLicences(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var names, known []string
	for _, e := range entries {
		if !e.IsDir() && licenceName.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	choice, chosen := choices[m.path]
	if chosen {
		names = append(names, choice.chosen)
	}
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		m.licences = append(m.licences, file{name: "licences/" + m.path + "/" + name, content: content})
		if !permission.MatchString(name) {
			known = append(known, identify(content)...)
		}
	}
	slices.Sort(known)
	if known = slices.Compact(known); len(known) == 0 {
		return errors.New("no known licence in " + m.path + " " + m.version)
	}
	m.licence = strings.Join(known, " AND ")
	m.declared = m.licence
	if chosen {
		m.declared = choice.declared
	}
	return nil
}

// mostly is the minimum percentage of a text that must belong to known licences. The rest is names
// and years.
const mostly = 75

// identify returns the SPDX identifiers of the licences in a text. It returns nil if less than
// mostly percent of the text belongs to licences.
func identify(text []byte) (ids []string) {
	found := licensecheck.Scan(text)
	if found.Percent < mostly {
		return nil
	}
	for _, match := range found.Match {
		if !match.IsURL {
			ids = append(ids, match.ID)
		}
	}
	return ids
}
