package fields_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/clients/go/internal/fields"
)

var styles = map[string]fields.Style{"none": fields.None, "draft": fields.Draft, "x": fields.X, "both": fields.Both}

func TestHeaders(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "vectors", "headers.json"))
	require.NoError(t, err)
	var file struct {
		Vectors []struct {
			Name, Style string
			Status      int
			Answer      fields.Answer
			Headers     map[string]string
			Problem     *fields.Problem
		}
	}
	require.NoError(t, json.Unmarshal(text, &file))
	require.NotEmpty(t, file.Vectors)
	for _, v := range file.Vectors {
		style, ok := styles[v.Style]
		require.True(t, ok, v.Name)
		got := map[string]string{}
		for _, f := range fields.Append(nil, &v.Answer, style) {
			got[f.Name] = f.Value
		}
		if len(got) > 0 || len(v.Headers) > 0 {
			require.Equal(t, v.Headers, got, v.Name)
		}
		if v.Problem != nil {
			require.Equal(t, *v.Problem, fields.ProblemOf(&v.Answer, v.Status), v.Name)
		}
	}
}
