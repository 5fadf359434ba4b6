package process

// Describe reads the text of /proc/cpuinfo.
func (m *Machine) Describe(cpuinfo string) { m.describe(cpuinfo) }
