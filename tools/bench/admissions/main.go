// Command admissions draws what each limiter admits of the same load, for docs/limiters.md. It
// calls the packages that the server uses and advances the clock itself, so the pictures show what
// the server does. A test compares the committed files with its output.
//
// Usage: admissions folder
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

//go:generate go run . ../../../docs/images

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: admissions folder")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "admissions:", err)
		os.Exit(1)
	}
}

// write writes every picture into the folder.
func write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, content := range pictures() {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// pictures returns the content of every file by its name.
func pictures() map[string][]byte {
	files := make(map[string][]byte)
	for _, l := range limiters() {
		files[l.file+".svg"] = draw(l, run(l.decide))
	}
	return files
}
