/** Connections to a server: by ioredis, or by the application's own client, ioredis or node-redis. */

import { Redis, type RedisOptions } from 'ioredis'
import { UnexpectedReply } from './result.js'
import { type Fault } from './verdict.js'

/** The error for a call without a reply. */
export class FaultError extends Error {
  constructor(readonly fault: Fault, cause?: unknown) {
    super(fault, { cause })
    this.name = 'FaultError'
  }
}

/** The error reply of a server. */
export class ServerError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ServerError'
  }
}

/** A connection to a server. */
export interface Connection {
  /** Whether a call would be sent at once. Nothing is sent otherwise: a call that waits may be charged long after its caller has left. */
  ready(): boolean
  /** Calls back once, when the connection is ready. The returned function takes that back. */
  whenReady(callback: () => void): () => void
  /** Sends a command. It rejects with an error of the client's own: see errorOf. */
  call(words: string[]): Promise<unknown>
  /** Ends the connection and makes a new one, if that is ours to do. */
  renew(): void
  close(): Promise<void>
}

/** The part of ioredis that is used. */
export interface IoredisClient {
  status: string
  call(command: string, ...args: string[]): Promise<unknown>
  once(event: string, listener: () => void): unknown
  off(event: string, listener: () => void): unknown
}

/** The part of node-redis that is used. */
export interface NodeRedisClient {
  isReady: boolean
  sendCommand(args: string[]): Promise<unknown>
  once(event: string, listener: () => void): unknown
  off(event: string, listener: () => void): unknown
}

function isReply(error: unknown): error is Error {
  // ReplyError is that of ioredis. node-redis has ErrorReply, and classes of it such as SimpleError.
  if (!(error instanceof Error)) return false
  for (let at = Object.getPrototypeOf(error) as object | null; at !== null; at = Object.getPrototypeOf(at) as object | null) {
    const name = (at as Error).constructor?.name
    if (name === 'ReplyError' || name === 'ErrorReply') return true
  }
  return false
}

/** Returns what a client has rejected with: the error reply of the server, or the fault that there is no reply. */
export function errorOf(error: unknown): Error {
  if (error instanceof FaultError || error instanceof UnexpectedReply) return error
  return isReply(error) ? new ServerError(error.message) : new FaultError('broken', error)
}

/** A client of the application. Its connection is left alone. */
class Borrowed implements Connection {
  constructor(readonly client: IoredisClient | NodeRedisClient) {}

  ready(): boolean {
    return 'sendCommand' in this.client && 'isReady' in this.client ? this.client.isReady : (this.client as IoredisClient).status === 'ready'
  }

  whenReady(callback: () => void): () => void {
    this.client.once('ready', callback)
    return () => void this.client.off('ready', callback)
  }

  call(words: string[]): Promise<unknown> {
    if ('isReady' in this.client) return this.client.sendCommand(words)
    return this.client.call(words[0]!, ...words.slice(1))
  }

  renew(): void {}

  async close(): Promise<void> {}
}

/** The longest time between two attempts to connect, in milliseconds. */
const reconnectMs = 250

/** A connection of our own. */
class Owned extends Borrowed {
  readonly #redis: Redis

  constructor(url: string, options: RedisOptions) {
    const own: RedisOptions = {
      connectTimeout: 1000,
      ...options,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      enableAutoPipelining: true,
      retryStrategy: (attempt: number) => Math.min(20 * attempt, reconnectMs),
    }
    const redis = new Redis(url, own)
    redis.on('error', () => {}) // each call says what is wrong
    super(redis as unknown as IoredisClient)
    this.#redis = redis
  }

  override renew(): void {
    this.#redis.disconnect(true)
  }

  override async close(): Promise<void> {
    this.#redis.disconnect()
  }
}

/** Returns a connection to a server. */
export function connect(url: string | undefined, client: IoredisClient | NodeRedisClient | undefined, options: RedisOptions = {}): Connection {
  if (client !== undefined && url === undefined) return new Borrowed(client)
  if (url !== undefined && client === undefined) return new Owned(url, options)
  throw new TypeError('a limiter needs either url or client')
}
