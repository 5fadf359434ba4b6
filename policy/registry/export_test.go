package registry

// UrgentWaits reports whether an urgent change waits or is in progress.
func (r *Registry) UrgentWaits() bool { return r.urgent.Load() > 0 }
