// Package tracking has CLIENT TRACKING and related commands. It notifies clients when keys
// change that they have read.
package tracking
