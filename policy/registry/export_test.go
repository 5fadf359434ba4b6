package registry

// UrgentWaits reports whether an urgent change waits or is under way.
func (r *Registry) UrgentWaits() bool { return r.urgent.Load() > 0 }
