// Package lists has the commands on lists.
package lists
