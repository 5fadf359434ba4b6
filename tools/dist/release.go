package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// release holds the options of one call.
type release struct {
	root, out, version, tags string
	date                     time.Time
}

// program is a program with an archive of its own for each platform.
type program struct {
	name string
	// module is the directory of the program's module, and folder the directory of the program in
	// the module.
	module, folder string
	// common are the files of its archive on every platform, without third-party licences.
	common []file
}

func programs() []*program {
	return []*program{
		{name: "cellserver", module: ".", folder: "./cmd/cellserver"},
		{name: "cellbench", module: "tools/bench", folder: "./cellbench"},
	}
}

type file struct {
	name       string
	content    []byte
	executable bool
}

// make writes the archives, bills of materials and checksums into the directory out.
func (r *release) make(ctx context.Context, platforms []string) error {
	work, err := os.MkdirTemp("", "dist")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }() // the system cleans its temporary directory
	all := programs()
	server, bench := all[0], all[1]
	own := filepath.Join(work, server.name)
	if err := r.compile(ctx, server, runtime.GOOS, runtime.GOARCH, own); err != nil {
		return err
	}
	if err := r.readVersion(ctx, own); err != nil {
		return err
	}
	if err := r.readCommon(ctx, server, own); err != nil {
		return err
	}
	if err := r.readPages(bench, map[string]string{"LICENSE": "LICENSE", "docs/cellbench.md": "cellbench.md"}); err != nil {
		return err
	}
	if err := r.empty(); err != nil {
		return err
	}
	for _, platform := range platforms {
		for _, p := range all {
			if err := r.platform(ctx, p, platform, work); err != nil {
				return fmt.Errorf("%s for %s: %w", p.name, platform, err)
			}
		}
	}
	return writeSums(r.out)
}

// empty creates the directory out, or deletes the files of an earlier call in it. If it contains
// other files, empty returns an error.
func (r *release) empty() error {
	entries, err := os.ReadDir(r.out)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, e := range entries {
		if e.Name() != sumsName && !slices.ContainsFunc(programs(), func(p *program) bool { return strings.HasPrefix(e.Name(), p.name+"-") }) {
			return fmt.Errorf("%s contains %s, which this program has not made", r.out, e.Name())
		}
	}
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	return os.MkdirAll(r.out, 0o755)
}

// compile compiles a program for a platform. The result does not depend on this machine.
func (r *release) compile(ctx context.Context, p *program, system, architecture, to string) error {
	absolute, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags="+r.tags,
		fmt.Sprintf("-ldflags=-s -w -buildid= -X main.released=%d", r.date.Unix()), "-o", absolute, p.folder)
	cmd.Dir = filepath.Join(r.root, p.module)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+architecture,
		"GOAMD64=v1", "GOARM64=v8.0", "GOWORK=off", "GOEXPERIMENT=", "GOFIPS140=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// output returns the standard output of a command.
func output(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var wrong bytes.Buffer
	cmd.Stderr = &wrong
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, wrong.Bytes())
	}
	return out, nil
}

// readVersion sets r.version to the version that the program at path prints, unless the caller has
// set it.
func (r *release) readVersion(ctx context.Context, path string) error {
	said, err := output(ctx, "", path, "version")
	if err != nil {
		return err
	}
	words := strings.Fields(string(said))
	if len(words) < 2 {
		return fmt.Errorf("version: the program says %q", said)
	}
	if r.version == "" {
		r.version = words[1]
	}
	return nil
}

// readPages reads files of the project and stores them under their names in the archive.
func (r *release) readPages(p *program, names map[string]string) error {
	for from, to := range names {
		content, err := os.ReadFile(filepath.Join(r.root, from))
		if err != nil {
			return err
		}
		p.common = append(p.common, file{name: to, content: content})
	}
	return nil
}

// readCommon reads the files of every archive of the server: pages of the project, and the output
// of the program at path.
func (r *release) readCommon(ctx context.Context, p *program, path string) error {
	err := r.readPages(p, map[string]string{
		"LICENSE": "LICENSE", "README.md": "README.md", "CHANGELOG.md": "CHANGELOG.md", "SECURITY.md": "SECURITY.md",
		"deploy/systemd/cellserver.service": "cellserver.service",
	})
	if err != nil {
		return err
	}
	for name, args := range map[string][]string{
		"cellserver.1":                {"man"},
		"cellserver.conf":             {"--sample-config"},
		"completions/cellserver.bash": {"completion", "bash"},
		"completions/_cellserver":     {"completion", "zsh"},
		"completions/cellserver.fish": {"completion", "fish"},
	} {
		said, err := output(ctx, "", "env", append([]string{fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.date.Unix()), path}, args...)...)
		if err != nil {
			return err
		}
		p.common = append(p.common, file{name: name, content: said})
	}
	return nil
}

// platform makes the archive and the bill of materials of a program for one platform. The archive
// is a zip file for Windows, and a tar.gz file for other systems.
func (r *release) platform(ctx context.Context, p *program, platform, work string) error {
	system, architecture, found := strings.Cut(platform, "/")
	if !found {
		return fmt.Errorf("a platform is system/architecture")
	}
	name := fmt.Sprintf("%s-%s-%s-%s", p.name, r.version, system, architecture)
	binary := p.name
	if system == "windows" {
		binary += ".exe"
	}
	path := filepath.Join(work, name)
	if err := r.compile(ctx, p, system, architecture, path); err != nil {
		return err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	modules, err := r.modulesOf(ctx, p, path)
	if err != nil {
		return err
	}
	files := append([]file{{name: binary, content: content, executable: true}}, p.common...)
	for _, m := range modules {
		files = append(files, m.licences...)
	}
	bill, err := r.bill(p, name, binary, content, modules)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.out, name+".spdx.json"), bill, 0o644); err != nil {
		return err
	}
	if system == "windows" {
		return r.zip(name, files)
	}
	return r.tar(name, files)
}
