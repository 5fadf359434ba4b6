// Package blocking has commands wait for elements: BLPOP, BZPOPMIN, BLMOVE and their kin. A
// waiting client is served by whoever puts an element under one of its keys, with that key
// locked, before anybody else can take it. Lists and sorted sets say how their elements are
// taken.
package blocking
