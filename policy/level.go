package policy

// Level is the feature level of this release: it reads all records of entries whose [Entry.Level] is not above it. Servers
// that share a store tell each other their levels, so that none of them sets an entry that another one cannot read.
//
// Raise it by 1 in a release that writes records which the release before it refuses or misunderstands: a kind of entry,
// a family of clauses or an option of one, or a field of [Entry.AppendValue]. Entry.Level then returns the new level for
// the entries that have it, and the lower one for all others.
const Level = 1

// Level returns the feature level that a server needs to read the record of e.
func (*Entry) Level() int { return 1 }
