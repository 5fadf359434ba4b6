// Package lists implements the commands on lists.
package lists
