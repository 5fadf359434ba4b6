// Package pubsub implements SUBSCRIBE, PUBLISH and related commands. It keeps the subscriptions of
// clients and delivers messages to them.
package pubsub
