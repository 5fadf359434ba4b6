// Package rules has the rules of a caller: what it sends, what a reply means and what happens without one.
//
// The rules are the same in the packages of all languages. The files in clients/vectors are written with
// this package and the deciders of the server, and the tests of each language read them. Nothing here does
// I/O or reads a clock.
package rules
