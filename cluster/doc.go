// Package cluster decides asks with the state in a Valkey or Redis, so that any number of
// servers hold one limit. The engine compares and sets; package decide decides.
package cluster
