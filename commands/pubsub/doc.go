// Package pubsub has SUBSCRIBE, PUBLISH and their kin: who listens to what, and how
// messages reach them.
package pubsub
