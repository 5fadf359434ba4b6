package report

import (
	"slices"
	"strings"
)

// StoreServer is a server that shares the store with this one.
type StoreServer struct {
	ID       string `json:"id"` // the run_id of the server, as in INFO
	Address  string `json:"address"`
	Version  string `json:"version"`  // the version of its program
	Policies string `json:"policies"` // the version of its policies: a number and an ID
	File     string `json:"file"`     // a hash of its policy file; "" if it has none
	Level    int    `json:"level"`    // the feature level of its program
	Tzdata   string `json:"tzdata"`   // the release of its calendar data
	AgeMs    int64  `json:"age_ms"`   // time in milliseconds since its latest sign of life
	Started  int64  `json:"started"`
	// Unreadable says that this server cannot read the record of the other server. The fields before this one are empty
	// then, except ID and AgeMs.
	Unreadable bool `json:"unreadable,omitempty"`
	Self       bool `json:"self,omitempty"` // whether this is the server that has made the report
	// Verdict is the kind of its verdict, and Sick whether that is a fault. These two fields and the figures of the
	// last ten seconds are set only in a report of all servers, for the servers in the sum.
	Verdict     string  `json:"verdict,omitempty"`
	Sick        bool    `json:"sick,omitempty"`
	CallsS      float64 `json:"calls_s,omitempty"`
	DeniedRatio float64 `json:"denied_ratio,omitempty"`
}

// name returns the address of the server, or its id if its record cannot be read.
func (s *StoreServer) name() string {
	if s.Unreadable {
		return s.ID
	}
	return s.Address
}

// mostNamed is the maximum number of servers in the text of a check.
const mostNamed = 5

// checkAlike returns a check that compares the texts that of returns for the servers. It passes if all servers with a
// readable record have the same text, and otherwise names the servers that differ from this one.
func checkAlike(all []StoreServer, id, name, alike string, of func(s *StoreServer) string) Check {
	c := Check{ID: id, Name: name, OK: true, Text: alike, Bound: "all alike"}
	values := map[string]bool{}
	own := ""
	for i := range all {
		if s := &all[i]; !s.Unreadable {
			values[of(s)] = true
			if s.Self {
				own = of(s)
			}
		}
	}
	if len(values) < 2 {
		return c
	}
	var others []string
	for i := range all {
		if s := &all[i]; !s.Unreadable && of(s) != own {
			others = append(others, Key(s.name()).shown())
		}
	}
	slices.Sort(others)
	c.OK, c.Value = false, float64(len(others))
	c.Text = "not those of " + strings.Join(others[:min(len(others), mostNamed)], ", ")
	if more := len(others) - mostNamed; more > 0 {
		c.Text += " and " + thousands(int64(more)) + " others"
	}
	return c
}

// serverChecks returns the checks of the servers that share the store.
func serverChecks(all []StoreServer) []Check {
	return []Check{
		checkAlike(all, CheckFiles, "Policy files are equal", "on all servers", func(s *StoreServer) string { return s.File }),
		checkAlike(all, CheckCalendars, "Calendar data are equal", "on all servers", func(s *StoreServer) string { return s.Tzdata }),
	}
}
