package process

// Describe parses the text of /proc/cpuinfo.
func (m *Machine) Describe(cpuinfo string) { m.describe(cpuinfo) }
