// Package records keeps the records of policies in the engine: the Valkey or Redis that has the
// state of limits.
//
// A [Store] implements the interface registry.Store. It writes changes, and passes the changes of
// other servers to an [Observer]. Each change gives the records a new [Version]. A change is written
// only at the version that its server has observed, so no server overwrites a change that it does
// not know.
//
// # Keys
//
// All keys begin with [KeyPrefix] and are in one slot, so that a script may use them together:
//
//	{policies}:head        a string with the version: its number and its id
//	{policies}:log         a hash with the latest 10,000 changes, by number
//	{policies}:confirm     a string that is written to see whether replicas have what was written before
//	{policies}:00 to :ff   hashes with the records, by a hash of their keys
//
// Package servers has another one, {policies}:servers.
//
// See docs/adr/0024 for the reasons. Package registry defines what the records mean, and package
// engine sends the scripts.
package records
