package headers_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/front/headers"
)

//go:generate go test -run TestVectorsAreFresh . -args -write

var write = flag.Bool("write", false, "write clients/vectors/headers.json")

// vectorsFile is the file with the cases, for other languages.
var vectorsFile = filepath.Join("..", "..", "clients", "vectors", "headers.json")

// vector is an answer and what it becomes. Problem is nil if the answer is not a denial.
type vector struct {
	Name    string            `json:"name"`
	Style   string            `json:"style"`
	Status  int               `json:"status"`
	Answer  headers.Answer    `json:"answer"`
	Headers map[string]string `json:"headers"`
	Problem *headers.Problem  `json:"problem,omitempty"`
}

type clauses = []headers.Clause

const never = -1

// one returns an answer of a policy with one clause.
func one(denied bool, c headers.Clause) headers.Answer {
	c.Denies = denied
	return headers.Answer{Policy: "api", Denied: denied, Binding: c, Clauses: clauses{c}}
}

// several returns an answer whose binding clause is each[binding]. It is denied if a clause denies it.
func several(binding int, each ...headers.Clause) headers.Answer {
	a := headers.Answer{Policy: "api", Binding: each[binding], Clauses: each}
	for _, c := range each {
		a.Denied = a.Denied || c.Denies
	}
	return a
}

// named returns a as the answer of another policy.
func named(policy string, a headers.Answer) headers.Answer {
	a.Policy = policy
	return a
}

func blocked(a headers.Answer) headers.Answer {
	a.Blocked = true
	return a
}

func exceeded(violated ...string) *headers.Problem {
	return &headers.Problem{
		Type:  "https://iana.org/assignments/http-problem-types#quota-exceeded",
		Title: "Request cannot be satisfied as assigned quota has been exceeded", Status: 429, Violated: violated,
	}
}

func abnormal(status int) *headers.Problem {
	return &headers.Problem{
		Type:  "https://iana.org/assignments/http-problem-types#abnormal-usage-detected",
		Title: "Request not satisfied due to detection of abnormal request pattern", Status: status, Violated: []string{"api"},
	}
}

func window(limit, remaining, retry, reset, length int64) headers.Clause {
	return headers.Clause{Limit: limit, Remaining: remaining, RetryMillis: retry, ResetMillis: reset, WindowMillis: length}
}

func denying(c headers.Clause) headers.Clause {
	c.Denies = true
	return c
}

var unlimited = headers.Clause{Limit: 4294967295, Remaining: 4294967295, RetryMillis: never, Unlimited: true}

var vectors = []vector{
	{
		Name: "docs/recipes.md: the first request of a minute", Style: "draft", Status: 200,
		Answer:  named("user", one(false, window(100, 99, never, 60_001, 60_000))),
		Headers: map[string]string{"RateLimit-Policy": `"user";q=100;w=60`, "RateLimit": `"user";r=99;t=61`},
	},
	{
		Name: "docs/recipes.md: the last request of a minute", Style: "draft", Status: 200,
		Answer:  named("user", one(false, window(100, 0, never, 119_401, 60_000))),
		Headers: map[string]string{"RateLimit-Policy": `"user";q=100;w=60`, "RateLimit": `"user";r=0;t=120`},
	},
	{
		Name: "docs/recipes.md: a request too many", Style: "draft", Status: 429,
		Answer:  named("user", one(true, window(100, 0, 60_001, 119_401, 60_000))),
		Headers: map[string]string{"RateLimit-Policy": `"user";q=100;w=60`, "RateLimit": `"user";r=0;t=61`, "Retry-After": "61"},
		Problem: exceeded("user"),
	},
	{
		Name: "a window with units left", Style: "draft", Status: 200,
		Answer:  one(false, window(100, 50, never, 30_000, 60_000)),
		Headers: map[string]string{"RateLimit-Policy": `"api";q=100;w=60`, "RateLimit": `"api";r=50;t=30`},
	},
	{
		Name: "a window that is used up", Style: "draft", Status: 429,
		Answer:  one(true, window(100, 0, 5_000, 30_000, 60_000)),
		Headers: map[string]string{"RateLimit-Policy": `"api";q=100;w=60`, "RateLimit": `"api";r=0;t=5`, "Retry-After": "5"},
		Problem: exceeded("api"),
	},
	{
		Name: "times are rounded up", Style: "draft", Status: 429,
		Answer:  one(true, window(3, 0, 5_001, 30_000, 60_500)),
		Headers: map[string]string{"RateLimit-Policy": `"api";q=3;w=61`, "RateLimit": `"api";r=0;t=6`, "Retry-After": "6"},
		Problem: exceeded("api"),
	},
	{
		Name: "a wait of a millisecond is one of a second", Style: "both", Status: 429,
		Answer: one(true, window(3, 2, 1, 1, 100)),
		Headers: map[string]string{
			"RateLimit-Policy": `"api";q=3;w=1`, "RateLimit": `"api";r=2;t=1`, "Retry-After": "1",
			"X-RateLimit-Limit": "3", "X-RateLimit-Remaining": "2", "X-RateLimit-Reset": "1",
		},
		Problem: exceeded("api"),
	},
	{
		Name: "nothing is in use", Style: "both", Status: 200,
		Answer: one(false, window(100, 100, never, 0, 60_000)),
		Headers: map[string]string{
			"RateLimit-Policy": `"api";q=100;w=60`, "RateLimit": `"api";r=100`,
			"X-RateLimit-Limit": "100", "X-RateLimit-Remaining": "100", "X-RateLimit-Reset": "0",
		},
	},
	{
		Name: "a bucket has no window", Style: "draft", Status: 200,
		Answer:  one(false, window(200, 199, never, 10, 0)),
		Headers: map[string]string{"RateLimit-Policy": `"api";q=200`, "RateLimit": `"api";r=199;t=1`},
	},
	{
		Name: "places for requests that run", Style: "draft", Status: 429,
		Answer:  one(true, headers.Clause{Limit: 2, RetryMillis: 29_000, ResetMillis: 30_000, Concurrent: true}),
		Headers: map[string]string{"RateLimit-Policy": `"api";q=2;qu="concurrent-requests"`, "RateLimit": `"api";r=0;t=29`, "Retry-After": "29"},
		Problem: exceeded("api"),
	},
	{
		Name: "several clauses with units left", Style: "both", Status: 200,
		Answer: several(0, window(10, 9, never, 60_000, 60_000), window(1000, 999, never, 86_400_000, 86_400_000)),
		Headers: map[string]string{
			"RateLimit-Policy": `"api";q=10;w=60, "api#2";q=1000;w=86400`, "RateLimit": `"api";r=9;t=60, "api#2";r=999;t=86400`,
			"X-RateLimit-Limit": "10", "X-RateLimit-Remaining": "9", "X-RateLimit-Reset": "60",
		},
	},
	{
		Name: "the first of several clauses denies the call", Style: "both", Status: 429,
		Answer: several(0, denying(window(10, 0, 7_000, 7_000, 60_000)), window(1000, 990, never, 86_000_000, 86_400_000)),
		Headers: map[string]string{
			"RateLimit-Policy": `"api";q=10;w=60, "api#2";q=1000;w=86400`, "RateLimit": `"api";r=0;t=7, "api#2";r=990`, "Retry-After": "7",
			"X-RateLimit-Limit": "10", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "7",
		},
		Problem: exceeded("api"),
	},
	{
		Name: "Retry-After is that of the clause with the longest wait", Style: "draft", Status: 429,
		Answer: several(0, denying(window(10, 0, 7_000, 7_000, 60_000)), denying(window(1000, 0, 86_000_000, 86_000_000, 86_400_000))),
		Headers: map[string]string{
			"RateLimit-Policy": `"api";q=10;w=60, "api#2";q=1000;w=86400`, "RateLimit": `"api";r=0;t=7, "api#2";r=0;t=86000`, "Retry-After": "86000",
		},
		Problem: exceeded("api", "api#2"),
	},
	{
		Name: "a call that one of the clauses never lets pass", Style: "draft", Status: 429,
		Answer:  several(1, denying(window(10, 3, 7_000, 7_000, 60_000)), denying(window(5, 5, never, 0, 0))),
		Headers: map[string]string{"RateLimit-Policy": `"api";q=10;w=60, "api#2";q=5`, "RateLimit": `"api";r=3;t=7, "api#2";r=5`},
		Problem: exceeded("api", "api#2"),
	},
	{
		Name: "a limit of 0", Style: "both", Status: 429,
		Answer: one(true, window(0, 0, never, 0, 60_000)),
		Headers: map[string]string{
			"RateLimit-Policy": `"api";q=0;w=60`, "RateLimit": `"api";r=0`, "X-RateLimit-Limit": "0", "X-RateLimit-Remaining": "0",
		},
		Problem: exceeded("api"),
	},
	{
		Name: "a clause that would deny the call, which a shadow policy lets pass", Style: "draft", Status: 200,
		Answer: headers.Answer{
			Policy: "api", Binding: window(10, 0, never, 40_000, 60_000), Clauses: clauses{denying(window(10, 0, 40_000, 40_000, 60_000))},
		},
		Headers: map[string]string{"RateLimit-Policy": `"api";q=10;w=60`, "RateLimit": `"api";r=0;t=40`},
	},
	{
		Name: "a block", Style: "draft", Status: 429,
		Answer:  blocked(several(0, denying(window(10, 0, 3_600_000, 3_600_000, 60_000)), denying(window(1000, 0, 3_600_000, 3_600_000, 0)))),
		Headers: map[string]string{"RateLimit-Policy": `"api";q=10;w=60, "api#2";q=1000`, "RateLimit": `"api";r=0;t=3600, "api#2";r=0;t=3600`, "Retry-After": "3600"},
		Problem: abnormal(429),
	},
	{
		Name: "a block without an end, with another status", Style: "draft", Status: 403,
		Answer:  blocked(one(true, window(10, 0, never, never, 60_000))),
		Headers: map[string]string{"RateLimit-Policy": `"api";q=10;w=60`, "RateLimit": `"api";r=0`},
		Problem: abnormal(403),
	},
	{
		Name: "no limit", Style: "both", Status: 200,
		Answer: one(false, unlimited), Headers: map[string]string{},
	},
	{
		Name: "a block where there is no limit", Style: "both", Status: 429,
		Answer:  blocked(one(true, headers.Clause{Limit: 4294967295, RetryMillis: 60_000, ResetMillis: 60_000, Unlimited: true})),
		Headers: map[string]string{"RateLimit": `"api";r=0;t=60`, "Retry-After": "60", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "60"},
		Problem: abnormal(429),
	},
	{
		Name: "only the old names", Style: "x", Status: 429,
		Answer:  one(true, window(100, 0, 5_000, 30_000, 60_000)),
		Headers: map[string]string{"X-RateLimit-Limit": "100", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "5", "Retry-After": "5"},
		Problem: exceeded("api"),
	},
	{
		Name: "no fields", Style: "none", Status: 429,
		Answer:  one(true, window(100, 0, 5_000, 30_000, 60_000)),
		Headers: map[string]string{}, Problem: exceeded("api"),
	},
	{
		Name: "numbers beyond the integers of structured fields", Style: "draft", Status: 200,
		Answer:  one(false, window(math.MaxInt64, math.MaxInt64-1, never, 1_000, 1_000)),
		Headers: map[string]string{"RateLimit-Policy": `"api";q=999999999999999;w=1`, "RateLimit": `"api";r=999999999999999;t=1`},
	},
}

func styleOf(t *testing.T, name string) headers.Style {
	t.Helper()
	for i, n := range headers.Styles {
		if n == name {
			return headers.Style(i)
		}
	}
	t.Fatalf("there is no style %q", name)
	return 0
}

func TestVectors(t *testing.T) {
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			got := map[string]string{}
			for _, f := range headers.Append(nil, &v.Answer, styleOf(t, v.Style)) {
				got[f.Name] = f.Value
			}
			require.Equal(t, v.Headers, got)
			if !v.Answer.Denied {
				require.Nil(t, v.Problem)
				return
			}
			require.Equal(t, *v.Problem, headers.ProblemOf(&v.Answer, v.Status))
		})
	}
}

// TestRetryAfterIsNeverEarly compares Retry-After with all t of the same answer, and with the times themselves.
func TestRetryAfterIsNeverEarly(t *testing.T) {
	times := []int64{never, 0, 1, 999, 1000, 1001, 59_999, 60_000, math.MaxInt64 / 1_000_000}
	for _, first := range times {
		for _, second := range times {
			for _, binding := range []int{0, 1} {
				a := several(binding, denying(window(9, 0, first, 5, 5)), denying(window(9, 0, second, 5, 5)))
				fields := map[string]string{}
				for _, f := range headers.Append(nil, &a, headers.Draft) {
					fields[f.Name] = f.Value
				}
				after, ok := fields["Retry-After"]
				if first == never || second == never {
					require.False(t, ok, "%d %d", first, second)
					continue
				}
				seconds, err := strconv.ParseInt(after, 10, 64)
				require.NoError(t, err)
				require.GreaterOrEqual(t, seconds*1000, max(first, second))
				for item := range strings.SplitSeq(fields["RateLimit"], ", ") {
					if _, effective, ok := strings.Cut(item, ";t="); ok {
						n, err := strconv.ParseInt(effective, 10, 64)
						require.NoError(t, err)
						require.GreaterOrEqual(t, seconds, n)
					}
				}
			}
		}
	}
}

// TestVectorsAreFresh compares the file with the vectors of this package, and writes it if the flag is set.
func TestVectorsAreFresh(t *testing.T) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	require.NoError(t, e.Encode(struct {
		About   string   `json:"about"`
		Vectors []vector `json:"vectors"`
	}{"Made by `make generate` from front/headers/headers_test.go. Each vector has an answer, and the header fields and the problem that it becomes.", vectors}))
	if *write {
		require.NoError(t, os.MkdirAll(filepath.Dir(vectorsFile), 0o755))
		require.NoError(t, os.WriteFile(vectorsFile, b.Bytes(), 0o644))
		return
	}
	file, err := os.ReadFile(vectorsFile)
	require.NoError(t, err)
	require.Equal(t, b.String(), string(file), "run make generate")
}
