// Package keys has the commands that are about keys, whatever they hold: DEL, EXPIRE,
// SCAN and their kin.
package keys
