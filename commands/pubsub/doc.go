// Package pubsub implements SUBSCRIBE, PUBLISH and related commands. It keeps the subscriptions
// and delivers the messages.
package pubsub
