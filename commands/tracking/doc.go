// Package tracking has CLIENT TRACKING and its kin, which tell clients what they have to
// forget of what they have read.
package tracking
