// Package simulation tests clusters of whole servers with faults in virtual time. It uses
// testing/synctest, and checks the promises of docs/high-availability.md and docs/operating.md.
//
// A seed determines a plan: options of the servers, the number of replicas, whether a model of
// Sentinel watches them, and the number of clients. A history is a few rounds. In each, clients
// call limiters, policies, strings, transactions, scripts and blocking commands while faults occur:
// links that are slow, held in one direction, parted or cut at a byte; servers that are killed,
// that lose power with all or a part of the data that was not synced, and that restart with another
// wall clock; disks that are full or fail; handovers, promotions, new snapshots, and replicas that
// lose their links. Then the faults end, the cluster must recover by itself, and the state is
// compared.
//
// The invariants:
//
//   - linearizable: the acknowledged calls of a key, and what a last look finds, have an order
//     in which each reply is right (porcupine). A call without a reply may take effect at any
//     later time, or never. So a lost acknowledged write is found, and so is one that counts
//     twice. Windows and leases last for years there, so that time does not matter.
//   - bound: of a key with a rate no more is admitted in any span than limit + rate * t.
//   - queue: no element of a list is delivered twice, and none is lost.
//   - order: the replies of a connection are those to its commands, in order (ECHO between them).
//   - equal: a replica at the offset of its primary has the same keys, values and expiries,
//     policies included. This is looked at after each fault, too, when nothing moves.
//   - restart: a server that is started again from its files has the state of before.
//   - denied: a call that is denied, or only looks, changes nothing, nor does it end a key.
//   - whole: once faults have ended there is one primary that all others follow.
//   - end: every goroutine ends, which synctest sees to.
//
// A fault that breaks a promise, such as the death of a primary whose writes wait for no replica,
// excuses the keys in use: they are not checked for losses, and the bound is that of one more
// limiter. The next round uses new keys.
//
// To replay a seed and print its events:
//
//	go test ./internal/simulation -run TestSeeds -seed 17 -v
//
// A replay is not quite exact: the order in which goroutines run is not part of the seed. The
// folder mutations has faults of the product as patches: `make mutants` applies each of them and
// prints how long it takes to find it. `make simulate` runs seeds for a given time.
package simulation
