package process

import (
	"os"
	"runtime"
	"strings"
)

// Machine describes the machine of a measurement.
type Machine struct {
	Processor string `json:"processor"`
	Cores     int    `json:"cores"`
	System    string `json:"system"`
	Go        string `json:"go"`
}

// describe parses /proc/cpuinfo, which also lists cores that a program with an affinity mask cannot
// use.
func (m *Machine) describe(cpuinfo string) {
	cores := 0
	for line := range strings.Lines(cpuinfo) {
		name, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(name) {
		case "processor":
			cores++
		case "model name":
			m.Processor = strings.TrimSpace(value)
		}
	}
	m.Cores = max(m.Cores, cores)
}

// This describes the machine that the program runs on.
func This() Machine {
	m := Machine{
		Processor: runtime.GOARCH, Cores: runtime.NumCPU(),
		System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(),
	}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		m.describe(string(text))
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.System += " " + strings.TrimSpace(string(release))
	}
	return m
}
