// Package epoll is the [transport.Transport] of Linux: a few event loops, each on a thread of its
// own, that share all connections. An idle connection has no goroutine and no buffer. [New] starts
// a [Transport]. On other systems New fails.
package epoll
