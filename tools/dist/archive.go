package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sumsName is the name of the file for `sha256sum --check`.
const sumsName = "SHA256SUMS"

func (f *file) mode() int64 {
	if f.executable {
		return 0o755
	}
	return 0o644
}

func sorted(files []file) []file {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files
}

// tar writes name.tar.gz, which contains a directory of the same name.
func (r *release) tar(name string, files []file) error {
	var packed bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(compressed)
	for _, f := range sorted(files) {
		err := w.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: name + "/" + f.name, Size: int64(len(f.content)), Mode: f.mode(),
			ModTime: r.date, Format: tar.FormatPAX,
		})
		if err != nil {
			return err
		}
		if _, err := w.Write(f.content); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := compressed.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, name+".tar.gz"), packed.Bytes(), 0o644)
}

// zip writes name.zip, which contains a directory of the same name.
func (r *release) zip(name string, files []file) error {
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	for _, f := range sorted(files) {
		header := &zip.FileHeader{Name: name + "/" + f.name, Method: zip.Deflate, Modified: r.date}
		header.SetMode(os.FileMode(f.mode()))
		part, err := w.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := part.Write(f.content); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, name+".zip"), packed.Bytes(), 0o644)
}

// writeSums writes the SHA-256 of every file in the directory to the file sumsName in it.
func writeSums(dir string) error {
	entries, err := os.ReadDir(dir) // ReadDir returns the entries sorted by name
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, e := range entries {
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		hash := sha256.New()
		_, err = io.Copy(hash, f)
		if closed := f.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", hash.Sum(nil), e.Name())
	}
	return os.WriteFile(filepath.Join(dir, sumsName), []byte(sums.String()), 0o644)
}
