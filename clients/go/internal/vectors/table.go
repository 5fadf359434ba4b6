package main

// scenario is a list of requests of one client through a middleware. Policy is a policy of the server with the clauses
// of Limits.
type scenario struct {
	Name          string         `json:"name"`
	Policy        string         `json:"policy"`
	Limits        []string       `json:"limits"`
	OnUnavailable string         `json:"onUnavailable"`
	Instances     int64          `json:"instances,omitempty"`
	Pause         int64          `json:"pause"`
	Steps         []scenarioStep `json:"steps"`
}

// scenarioStep is a request or, if Server is set, the moment at which the server goes away or comes back. At is the time in
// milliseconds since the first step.
type scenarioStep struct {
	At      int64             `json:"at"`
	Server  string            `json:"server,omitempty"`
	Cost    int64             `json:"cost,omitempty"`
	Status  int               `json:"status,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Asked   bool              `json:"asked"`
	Source  string            `json:"source,omitempty"`
}

// headers returns the expected header fields of an answer: RateLimit and, unless retry is "",
// Retry-After.
func headers(limit, retry string) map[string]string {
	h := map[string]string{}
	if limit != "" {
		h["RateLimit"], h["RateLimit-Policy"] = limit, `"api";q=2`
	}
	if retry != "" {
		h["Retry-After"] = retry
	}
	return h
}

// table has the answers of the worked examples in the specification of callers. They are written by hand: the answers of the
// server in them are those in decide.json for the same clause.
func table() (file, error) {
	f := file{name: "table.json", about: "Whole requests through a middleware, with the server there and away."}
	request := func(at int64, cost int64, status int, source string, h map[string]string) scenarioStep {
		return scenarioStep{At: at, Cost: cost, Status: status, Headers: h, Asked: source == "server" || source == "timeout", Source: source}
	}
	before := []scenarioStep{
		request(0, 1, 200, "server", headers(`"api";r=1;t=60`, "")),
		request(1000, 1, 200, "server", headers(`"api";r=0;t=119`, "")),
		request(2000, 1, 429, "server", headers(`"api";r=0;t=58`, "58")),
		request(2100, 1, 429, "cache", headers(`"api";r=0;t=58`, "58")),
		request(2200, 2, 429, "cache", headers(`"api";r=0;t=58`, "58")),
		request(2200, 3, 429, "server", headers(`"api";r=0`, "")),
		{At: 10_000, Server: "away"},
	}
	after := []scenarioStep{
		{At: 20_000, Server: "back"},
		request(20_000, 1, 429, "server", headers(`"api";r=0;t=40`, "40")),
		request(60_000, 1, 200, "server", headers(`"api";r=0;t=120`, "")),
	}
	for _, mode := range []struct {
		name   string
		status [6]int
		retry  [6]string
	}{
		{"allow", [6]int{200, 200, 200, 200, 200, 200}, [6]string{}},
		{"deny", [6]int{503, 503, 503, 503, 503, 503}, [6]string{"1", "1", "1", "1", "1", "1"}},
		{"local", [6]int{200, 429, 429, 429, 429, 429}, [6]string{"", "60", "60", "60", "60", "60"}},
	} {
		s := scenario{Name: "the worked example, " + mode.name, Policy: "api", Limits: []string{"TB 2 1 60"}, OnUnavailable: mode.name, Pause: 1000}
		source := "unavailable"
		if mode.name == "local" {
			s.Instances, source = 2, "local"
		}
		s.Steps = append(s.Steps, before...)
		for i := range mode.status {
			r := request(10_000, 1, mode.status[i], source, headers("", mode.retry[i]))
			r.Asked = i < 5
			if i == 5 {
				r.At = 10_500
			}
			s.Steps = append(s.Steps, r)
		}
		s.Steps = append(s.Steps, after...)
		f.vectors = append(f.vectors, s)
	}
	return f, nil
}
