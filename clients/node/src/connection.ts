/** Connections to a server: by ioredis, or by the application's own client, ioredis or node-redis. */

import { Command, Redis, ReplyError, type RedisOptions } from 'ioredis'
import { UnexpectedReply } from './result.js'
import { type Fault } from './verdict.js'

/** The error for a call without a reply. */
export class FaultError extends Error {
  /** busy says that the process itself was too busy: that is no fault of the server. */
  constructor(readonly fault: Fault, readonly busy = false, cause?: unknown) {
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

/** A command that is sent, and what is told how it ends. */
export interface Sent {
  words: string[]
  /** Whether anything waits for the reply. What nothing waits for is not sent. */
  readonly live: boolean
  replied(reply: unknown): void
  /** Is told an error of the client's own: see errorOf. */
  failed(error: unknown): void
}

/** A connection to a server. */
export interface Connection {
  /** Whether a call would be sent at once. Nothing is sent otherwise: a call that waits may be charged long after its caller has left. */
  ready(): boolean
  /** Calls back once, when the connection is ready. The returned function takes that back. */
  whenReady(callback: () => void): () => void
  /** The error reply with which the server has refused the user, or undefined. */
  refusal(): string | undefined
  send(sent: Sent): void
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
  on(event: 'ready', listener: () => void): unknown
  options: { autoResendUnfulfilledCommands?: boolean }
}

/** The part of node-redis that is used. */
export interface NodeRedisClient {
  isReady: boolean
  sendCommand(args: string[]): Promise<unknown>
  on(event: 'ready', listener: () => void): unknown
}

/** Reports whether an error is the reply of a server, which begins with a word in capitals. Names of classes are not asked for: a bundler changes them. */
function isReply(error: unknown): error is Error {
  return error instanceof ReplyError || (error instanceof Error && /^[A-Z][A-Z0-9_]*( |$)/.test(error.message))
}

/** Returns what a client has rejected with: the error reply of the server, or the fault that there is no reply. */
export function errorOf(error: unknown): Error {
  if (error instanceof FaultError || error instanceof UnexpectedReply) return error
  return isReply(error) ? new ServerError(error.message) : new FaultError('broken', false, error)
}

/** A client of the application. Its connection is left alone. */
class Borrowed implements Connection {
  readonly #waiting = new Set<() => void>()

  constructor(readonly client: IoredisClient | NodeRedisClient) {
    if ('options' in client && 'status' in client && client.options.autoResendUnfulfilledCommands !== false) {
      throw new TypeError('client: an ioredis needs autoResendUnfulfilledCommands: false, or it charges calls again after their callers have gone')
    }
    client.on('ready', () => {
      const waiting = [...this.#waiting]
      this.#waiting.clear()
      for (const callback of waiting) callback()
    })
  }

  ready(): boolean {
    return 'sendCommand' in this.client && 'isReady' in this.client ? this.client.isReady : (this.client as IoredisClient).status === 'ready'
  }

  whenReady(callback: () => void): () => void {
    this.#waiting.add(callback)
    return () => void this.#waiting.delete(callback)
  }

  send(sent: Sent): void {
    this.call(sent.words).then((reply) => sent.replied(reply), (error: unknown) => sent.failed(error))
  }

  call(words: string[]): Promise<unknown> {
    if ('isReady' in this.client) return this.client.sendCommand(words)
    return this.client.call(words[0]!, ...words.slice(1))
  }

  refusal(): string | undefined {
    return undefined
  }

  renew(): void {}

  async close(): Promise<void> {}
}

/** The longest time between two attempts to connect, in milliseconds. */
const reconnectMs = 250

/** Collects the commands of one turn of the event loop, as the stream of a pipeline of ioredis does. */
class Batch {
  text = ''

  write(command: string): boolean {
    this.text += command
    return true
  }
}

/** For how many milliseconds calls wait for the replies to those before, to be written together. */
const gatherMs = 1

/**
 * A connection of our own. The calls of one turn of the event loop are written at once, and those of all turns in which calls are
 * unanswered, for up to a millisecond: to write takes more of the processor than all else that a call does.
 */
class Owned extends Borrowed {
  readonly #redis: Redis
  #waiting: Sent[] = []
  #unanswered = 0
  #timer: NodeJS.Timeout | undefined
  #refusal: string | undefined

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
    super(redis as unknown as IoredisClient)
    this.#redis = redis
    redis.on('ready', () => (this.#refusal = undefined))
    redis.on('error', (error: Error) => {
      // Other errors are those of calls. This one comes of itself: a call is not sent before the user has logged in.
      const refused = /\b(NOAUTH|WRONGPASS|NOPERM)\b.*/.exec(error.message)
      if (refused !== null) this.#refusal = refused[0]
    })
  }

  override send(sent: Sent): void {
    if (this.#waiting.push(sent) > 1) return
    if (this.#unanswered === 0) setImmediate(this.#flush)
    else this.#timer = setTimeout(this.#flush, gatherMs)
  }

  readonly #flush = (): void => {
    clearTimeout(this.#timer)
    const waiting = this.#waiting
    this.#waiting = []
    const batch = new Batch()
    for (const sent of waiting) {
      if (!sent.live) continue
      const [name, ...args] = sent.words
      const command = new Command(name!, args)
      this.#unanswered++
      command.promise.then(
        (reply) => (this.#ended(), sent.replied(reply)),
        (error: unknown) => (this.#ended(), sent.failed(error)),
      )
      this.#redis.sendCommand(command, batch as never)
    }
    if (batch.text !== '') this.#redis.stream.write(batch.text)
  }

  #ended(): void {
    if (--this.#unanswered === 0 && this.#waiting.length > 0) setImmediate(this.#flush)
  }

  override refusal(): string | undefined {
    return this.#refusal
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
