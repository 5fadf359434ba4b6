// Package users implements the ACL command, which manages the users that may log in and their
// permissions.
package users
