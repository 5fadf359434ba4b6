// Package reservation keeps the reservations of a key: charges that are settled later.
//
// A reservation charges its units like every call. They come back, in part or as a whole, when it is
// settled or cancelled or has passed its time. The package remembers what it takes to undo the charge
// then, exactly: as if the call had asked for less when it was made, while all other calls have charged
// what they did.
package reservation
