package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// release is what one call makes.
type release struct {
	root, out, version string
	date               time.Time
	// common are the files that every archive has.
	common []file
}

// file is a file of an archive.
type file struct {
	name       string
	content    []byte
	executable bool
}

// make puts the archives, bills of materials and checksums into the folder out.
func (r *release) make(ctx context.Context, platforms []string) error {
	work, err := os.MkdirTemp("", "dist")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }() // what is left is the system's to delete
	own := filepath.Join(work, "cellserver")
	if err := r.compile(ctx, runtime.GOOS, runtime.GOARCH, own); err != nil {
		return err
	}
	if err := r.readVersion(ctx, own); err != nil {
		return err
	}
	if err := r.readCommon(ctx, own); err != nil {
		return err
	}
	if err := r.empty(); err != nil {
		return err
	}
	for _, platform := range platforms {
		if err := r.platform(ctx, platform, work); err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
	}
	return writeSums(r.out)
}

// empty makes the folder out, and deletes what an earlier call has left in it. A folder in
// which there is something else is an error.
func (r *release) empty() error {
	entries, err := os.ReadDir(r.out)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, e := range entries {
		if e.Name() != sumsName && !strings.HasPrefix(e.Name(), "cellserver-") {
			return fmt.Errorf("%s contains %s, which this program has not made", r.out, e.Name())
		}
	}
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	return os.MkdirAll(r.out, 0o755)
}

// compile compiles the server for a platform. Nothing of this machine gets into it.
func (r *release) compile(ctx context.Context, system, architecture, to string) error {
	absolute, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", fmt.Sprintf("-ldflags=-s -w -buildid= -X main.released=%d", r.date.Unix()), "-o", absolute, "./cmd/cellserver")
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+architecture,
		"GOAMD64=v1", "GOARM64=v8.0", "GOWORK=off", "GOEXPERIMENT=", "GOFIPS140=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// output returns what a command prints.
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

// readVersion asks the program for its version, if none is given.
func (r *release) readVersion(ctx context.Context, program string) error {
	said, err := output(ctx, "", program, "version")
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

// readCommon collects what every archive has: pages of the project, and what the program says
// of itself.
func (r *release) readCommon(ctx context.Context, program string) error {
	for from, to := range map[string]string{
		"LICENSE": "LICENSE", "README.md": "README.md", "CHANGELOG.md": "CHANGELOG.md", "SECURITY.md": "SECURITY.md",
		"deploy/systemd/cellserver.service": "cellserver.service",
	} {
		content, err := os.ReadFile(filepath.Join(r.root, from))
		if err != nil {
			return err
		}
		r.common = append(r.common, file{name: to, content: content})
	}
	for name, args := range map[string][]string{
		"cellserver.1":                {"man"},
		"cellserver.conf":             {"--sample-config"},
		"completions/cellserver.bash": {"completion", "bash"},
		"completions/_cellserver":     {"completion", "zsh"},
		"completions/cellserver.fish": {"completion", "fish"},
	} {
		said, err := output(ctx, "", "env", append([]string{fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.date.Unix()), program}, args...)...)
		if err != nil {
			return err
		}
		r.common = append(r.common, file{name: name, content: said})
	}
	return nil
}

// platform makes the archive and the bill of materials of one platform.
func (r *release) platform(ctx context.Context, platform, work string) error {
	system, architecture, found := strings.Cut(platform, "/")
	if !found {
		return fmt.Errorf("a platform is system/architecture")
	}
	name := fmt.Sprintf("cellserver-%s-%s-%s", r.version, system, architecture)
	binary := "cellserver"
	if system == "windows" {
		binary += ".exe"
	}
	path := filepath.Join(work, name)
	if err := r.compile(ctx, system, architecture, path); err != nil {
		return err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	modules, err := r.modulesOf(ctx, path)
	if err != nil {
		return err
	}
	files := append([]file{{name: binary, content: content, executable: true}}, r.common...)
	for _, m := range modules {
		files = append(files, m.licences...)
	}
	bill, err := r.bill(name, binary, content, modules)
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
