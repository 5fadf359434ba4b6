// Command vectors writes the files in clients/vectors, except headers.json, which the tests of front/headers write.
//
// The answers in decide.json come from a server, which decides in this process. Those of the rules that only callers
// have come from clients/go/internal/rules.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

//go:generate go run . ../../../vectors

// file is one file of vectors.
type file struct {
	name, about string
	vectors     []any
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: vectors FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "vectors:", err)
		os.Exit(1)
	}
}

// write writes all files into a folder.
func write(folder string) error {
	made, err := files()
	if err != nil {
		return err
	}
	for _, f := range made {
		text, err := f.text()
		if err != nil {
			return fmt.Errorf("encoding %s: %w", f.name, err)
		}
		if err := os.WriteFile(filepath.Join(folder, f.name), text, 0o644); err != nil {
			return fmt.Errorf("writing vectors: %w", err)
		}
	}
	return nil
}

// files returns all files.
func files() ([]file, error) {
	var made []file
	for _, f := range []func() (file, error){decisions, addresses, keys, breaker, cache, replies, wire, shares, table} {
		next, err := f()
		if err != nil {
			return nil, fmt.Errorf("making %s: %w", next.name, err)
		}
		made = append(made, next)
	}
	return made, nil
}

// text returns the file, with one vector a line, so that a difference shows which vectors have changed.
func (f *file) text() ([]byte, error) {
	var b bytes.Buffer
	about, err := encode("Made by `make generate`; see README.md. " + f.about)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&b, "{\n  \"about\": %s,\n  \"vectors\": [", about)
	for i, v := range f.vectors {
		line, err := encode(v)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n    ")
		b.Write(line)
	}
	b.WriteString("\n  ]\n}\n")
	return b.Bytes(), nil
}

// encode returns v as JSON on one line, with < and > as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
