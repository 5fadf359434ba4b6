package limiters

// scratch is the scratch of the limiters, and what RL.TOP shows.
type scratch struct {
	multi multiArgs
	// What RL.TOP shows: the tables, and the keys of this batch on their way there.
	denied, calls            topTable
	noted, notedMany, called []notedKey
	refusals                 int // of this batch
	untilCall                int
}
