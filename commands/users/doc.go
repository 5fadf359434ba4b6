// Package users has the ACL command: who may log in, and what they may do.
package users
