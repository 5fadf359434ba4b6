// Package simulation tests clusters of whole servers with faults in virtual time. It uses
// testing/synctest, and checks the promises of docs/high-availability.md and docs/operating.md.
//
// A seed determines a plan: options of the servers, the number of replicas, whether a model of
// Sentinel watches them, and the number of clients. A history consists of a few rounds. In each
// round, clients call limiters, reserve and settle, and use policies, strings, transactions,
// scripts and blocking commands while faults occur. Links are slow, held in one direction, parted,
// or cut at some byte. Servers are killed, lose power with all or a part of the data that was not
// synced, and restart with another wall clock. Disks are full or fail. There are handovers,
// promotions, new snapshots, and replicas that lose their links. Then the faults end, the cluster
// must recover by itself, and the test compares the states.
//
// The test checks these invariants:
//
//   - linearizable: the acknowledged calls of a key, and the state at the end, have an order in
//     which each reply is correct (porcupine). A call without a reply may take effect at any
//     later time, or never. So the check finds an acknowledged write that is lost, and one
//     that counts twice. A call with ID or RESERVE, RL.COMMIT or RL.CANCEL that gets no reply is
//     sent again and is one call of the history. Windows and leases last for years there, so that
//     time does not matter. The time of some reservations passes, which is a call of the history
//     too: it takes place between two instants that allow for the clocks of the servers.
//   - bound: a key with a rate admits no more than limit + rate * t in any span t. Some have days of
//     a calendar, one of which begins within the history.
//   - queue: no element of a list is delivered twice, and none is lost.
//   - order: the replies of a connection are those to its commands, in order (ECHO between
//     them).
//   - equal: a replica at the offset of its primary has the same keys, values and expiries,
//     with the policies. The test also checks this after each fault, when nothing moves. A LOG is
//     compared by its entries, since a replica may have other totals.
//   - restart: a server that is started again from its files has the state that it had before.
//   - denied: a call that is denied, or that only reads, changes nothing and removes no key.
//   - whole: when faults have ended, there is one primary, and all other servers follow it.
//   - end: every goroutine ends, which synctest checks.
//
// Some faults break a promise, such as the death of a primary whose writes wait for no replica.
// After such a fault, the keys in use are not checked for losses, and their bound is that of one
// more limiter. The next round uses new keys.
//
// To replay a seed and print its events:
//
//	go test ./internal/simulation -run TestSeeds -seed 17 -v
//
// A replay is not quite exact, since the order in which goroutines run is not part of the seed. The
// folder mutations has faults of the product as patches. `make mutants` applies each of them and
// prints how long it takes to find it. `make simulate` runs seeds for a given time.
package simulation
