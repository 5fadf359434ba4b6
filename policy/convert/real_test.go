package convert_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/policy/convert"
)

// refused are the files of ratelimit's own tests that ratelimit refuses.
var refused = []string{
	"bad_limit_unit.yaml", "bad_yaml.yaml", "duplicate_key.yaml", "empty_domain.yaml", "empty_key.yaml", "misspelled_key.yaml", "misspelled_key2.yaml",
	"non_map_list.yaml", "non_string_key.yaml", "replaces_empty.yaml", "replaces_self.yaml", "unlimited_with_unit.yaml",
}

// TestRealFilesConvert converts the configurations in a checkout of envoyproxy/ratelimit or of
// Limitador, including those in its documentation. Only files that the project itself refuses are
// refused.
func TestRealFilesConvert(t *testing.T) {
	for _, project := range []struct {
		variable string
		from     converter
		is       *regexp.Regexp // a configuration
	}{
		{"RATELIMIT_DIR", convert.FromEnvoy, regexp.MustCompile(`(?m)^(domain|descriptors):|^'''`)},
		{"LIMITADOR_DIR", convert.FromLimitador, regexp.MustCompile(`(?m)^- *namespace:`)},
	} {
		t.Run(project.variable, func(t *testing.T) {
			dir := os.Getenv(project.variable)
			if dir == "" {
				t.Skipf("SKIP: %s names no checkout of the project whose files to convert", project.variable)
			}
			files := configurations(t, dir, project.is)
			require.NotEmpty(t, files)
			for _, f := range files {
				r, faults := project.from([]convert.File{f})
				if isRefused(f.Name) {
					require.NotEmpty(t, faults, f.Name)
					t.Logf("refused, as it should be: %v", faults[0])
					continue
				}
				require.NoError(t, faults.Err(), f.Name)
				check(t, r)
				t.Logf("%s: %d policies, %d calls, %d notes", f.Name, len(r.Document.Policies), len(r.Calls), len(r.Notes)+r.Left)
			}
		})
	}
}

func isRefused(path string) bool {
	for _, name := range refused {
		if strings.HasSuffix(path, "/test/config/"+name) {
			return true
		}
	}
	return false
}

// configurations returns the files below dir that look like a configuration, and blocks of YAML in
// pages.
func configurations(t *testing.T, dir string, is *regexp.Regexp) (files []convert.File) {
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```")
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var parts [][]byte
		switch filepath.Ext(path) {
		case ".yaml":
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			parts = append(parts, text)
		case ".md":
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, m := range block.FindAllSubmatch(text, -1) {
				if !bytes.Contains(m[1], []byte("<")) { // a block with < shows a syntax and is no example
					parts = append(parts, m[1])
				}
			}
		}
		for _, part := range parts {
			if is.Match(part) && !bytes.Contains(part, []byte("entries:")) { // with entries it is a request
				files = append(files, convert.File{Name: filepath.ToSlash(path), Text: part})
			}
		}
		return nil
	}))
	return files
}
