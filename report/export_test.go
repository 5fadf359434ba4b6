package report

// LookEvery is the number of seconds between two looks. FirstLooks is the number of looks that
// record nothing.
const LookEvery, FirstLooks = lookEvery, firstLooks

// PackShare returns the bytes of s.
func PackShare(s *Share) []byte { return s.pack(nil) }
