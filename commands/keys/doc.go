// Package keys implements the commands on keys of any type: DEL, EXPIRE, SCAN and others.
package keys
