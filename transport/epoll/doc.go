// Package epoll is the [transport.Transport] of Linux: event loops that share all connections. Each
// loop has a thread of its own. An idle connection has no goroutine and no buffer. [New] starts a
// [Transport]. On other systems New fails.
package epoll
