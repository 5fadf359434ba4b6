package limiters

import (
	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// scratch is the scratch of the limiters, and what RL.TOP shows.
type scratch struct {
	throttle throttleCall
	window   slidingwindow.Call
	bucket   tokenbucket.Call
	lease    concurrency.Call
	multi    multiArgs
	// What RL.TOP shows: the tables, and the keys of this batch on their way there.
	denied, calls            topTable
	noted, notedMany, called []notedKey
	refusals                 int // of this batch
	untilCall                int
}
