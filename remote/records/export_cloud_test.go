package records

// Bound changes the number of changes in the log, the maximum size of the pairs of a change there, and the number of changes
// and of records that one request reads.
func (s *Store) Bound(logEntries, logPairs, step, scan int) {
	s.bounds.logEntries, s.bounds.logPairs, s.bounds.stepEntries, s.bounds.scan = logEntries, logPairs, step, scan
}
