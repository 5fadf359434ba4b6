// Package reservation keeps the reservations of a key: charges that are settled later.
//
// A reservation charges its units like every call. The units are given back, in part or as a whole,
// when the reservation is settled or cancelled or has passed its time. The package stores the data
// to undo the charge exactly: afterwards the state is as if the call had asked for fewer units when
// it was made, and all other calls had charged the same.
package reservation
