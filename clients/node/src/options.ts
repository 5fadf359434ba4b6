/** What a limiter is made with, and what its calls take and return. */

import { type RedisOptions } from 'ioredis'
import { type IoredisClient, type NodeRedisClient } from './connection.js'
import { type HeaderStyle } from './headers.js'
import { type KeyOf } from './keys.js'
import { type Result } from './result.js'
import { type Mode } from './wire.js'

/** What happens to a call that the server does not decide in time. */
export type OnUnavailable = 'allow' | 'deny' | 'local'

/** What a limiter tells about itself. */
export interface Log {
  warn(message: string): void
  error(message: string): void
}

/** The part of a meter of OpenTelemetry's API that is used. */
export interface Meter {
  createCounter(name: string): { add(n: number, attributes?: Record<string, string>): void }
  createHistogram(name: string, options?: { unit?: string; advice?: { explicitBucketBoundaries?: number[] } }): { record(n: number, attributes?: Record<string, string>): void }
  createUpDownCounter(name: string): { add(n: number, attributes?: Record<string, string>): void }
}

/** The options of a limiter. */
export interface LimiterOptions<R = unknown> {
  /** The server, as `redis://user:password@host:6379`, `rediss://` or a path of a Unix socket. Either it or `client` is needed. */
  url?: string
  /** A client of the application: ioredis or node-redis. Its connection is left alone. */
  client?: IoredisClient | NodeRedisClient
  /** Options of ioredis for a connection by `url`, such as `tls`. */
  redis?: RedisOptions
  /** The name of a policy of the server. With `limits` it names them in keys and header fields, and is `limit` by default. */
  policy?: string
  /** Clauses such as `TB 200 100 1`, in place of a policy of the server. All of them are charged, or none. */
  limits?: string | string[]
  /** The key of a request. A request without one is not limited. It is needed by the middleware. */
  key?: KeyOf<R>
  /** The cost of a request: 1 by default. */
  cost?: number | ((request: R) => number | Promise<number>)
  /** Names the member of a CC clause: by default a random one for each request. */
  member?: (request: R) => string
  /** Milliseconds for everything that a check waits for, from 20 to 1,000: 50 by default. */
  deadlineMs?: number
  /** What happens to calls that the server does not decide in time: `allow`, `deny` (503), or `local`, a limiter in the process. */
  onUnavailable: OnUnavailable
  /** How many instances of the application share the limits while each decides by itself. Needed by `local`. */
  instances?: number | (() => number)
  /** The clauses of `local`. By default they are `limits`, or are asked of the server each minute (RL.POLICY GET). */
  fallback?: string | string[]
  /** For how many milliseconds a denial is repeated from memory at most: 1,000 by default, 0 for never. */
  denialCacheMs?: number
  /** Whether a denial has to reach the server, for policies with BAN. It switches the cache of denials off. */
  ban?: boolean
  /** Makes calls count once although they are sent again after a broken connection. `random` makes the ids. */
  id?: 'random' | ((request: R) => string | undefined)
  /** The options CLASS and KEEP of RL.USE. */
  class?: string
  keep?: string
  /** Which header fields the middleware writes: `draft` by default. */
  headers?: HeaderStyle
  log?: Log
  /** A meter of OpenTelemetry's API. */
  meter?: Meter
  /** A clock in milliseconds in the place of the machine's, for tests. */
  now?: () => number
}

/** The options of one call. */
export interface CallOptions {
  cost?: number | undefined
  mode?: Mode | undefined
  member?: string | undefined
  id?: string | undefined
}

/** The error for a configuration that the server refuses. */
export class ConfigurationError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ConfigurationError'
  }
}

/** Units that were taken before the cost of a call is known. */
export interface Reservation {
  result: Result
  /** The units that the call has cost. Without a number, those that were reserved. */
  actual: number
  /** Ends the reservation: the units beyond `actual` are given back, or missing ones charged. */
  commit(): Promise<void>
  /** Gives all units back. */
  cancel(): Promise<void>
}
