/** A plugin for Fastify, a hook for single routes, and a store for @fastify/rate-limit. */

import { addFields, admit, denialOf, follow, setFields, type Fields, type MiddlewareOptions, type NodeResponse } from './answer.js'
import { Limiter } from './limiter.js'
import { type LimiterOptions } from './options.js'
import { hitsOf, limiterOfWindow } from './store.js'

/** The part of a Fastify request that is used, beside what keys read. */
export type FastifyRequestLike = object

/** The part of a Fastify reply that is used. */
export interface FastifyReplyLike {
  raw: NodeResponse
  sent: boolean
  hasHeader(name: string): boolean
  header(name: string, value: string): unknown
  code(status: number): unknown
  send(body: string): unknown
}

export interface Hook<R> {
  (request: R, reply: FastifyReplyLike, done: (error?: Error) => void): void
  /** The limiter, whose `close` ends its connection. */
  limiter: Limiter<R>
}

/** The header fields of a reply. Those of Node count where the application writes the response itself. */
export class ReplyFields implements Fields {
  constructor(readonly reply: FastifyReplyLike) {}

  hasHeader(name: string): boolean {
    return this.reply.hasHeader(name) || this.reply.raw.hasHeader(name)
  }

  setHeader(name: string, value: string): unknown {
    return this.reply.sent ? this.reply.raw.setHeader(name, value) : this.reply.header(name, value)
  }
}

/** Returns a hook, for `onRequest` or `preHandler` of a route. */
export function limit<R extends FastifyRequestLike = FastifyRequestLike>(options: MiddlewareOptions<R> | Limiter<R>): Hook<R> {
  const limiter = options instanceof Limiter ? options : new Limiter<R>(options)
  const charges = options instanceof Limiter ? {} : options
  const hook = (request: R, reply: FastifyReplyLike, done: (error?: Error) => void): void => {
    admit(limiter, charges, request, (admission) => {
      if (admission === undefined) return done()
      const { result } = admission
      follow(admission, reply.raw)
      if (result.allowed) {
        addFields(reply.raw, limiter.headers(result), new ReplyFields(reply))
        return done()
      }
      const denial = denialOf(limiter, result)
      setFields(new ReplyFields(reply), denial.fields)
      reply.code(denial.status)
      reply.send(denial.body)
    }, done as (fault: unknown) => void)
  }
  return Object.assign(hook, { limiter })
}

interface FastifyLike {
  addHook(name: 'onRequest', hook: Hook<never>): unknown
  addHook(name: 'onClose', hook: () => Promise<void>): unknown
}

/** The plugin: `fastify.register(cellserver, options)` limits all routes. Its connection ends with the application. */
export async function cellserver(fastify: FastifyLike, options: MiddlewareOptions<never>): Promise<void> {
  const hook = limit(options)
  fastify.addHook('onRequest', hook)
  fastify.addHook('onClose', () => hook.limiter.close())
}
// Without it, Fastify would hold the hook back from the routes beside the plugin.
;(cellserver as unknown as Record<symbol, unknown>)[Symbol.for('skip-override')] = true

type Callback = (error: Error | null, result?: { current: number; ttl: number }) => void

/** Options of @fastify/rate-limit that a store hears of. */
interface PluginOptions {
  ban?: unknown
  continueExceeding?: unknown
  exponentialBackoff?: unknown
  routeInfo?: { method?: string; url?: string }
}

/** Throws for options that need more than the number of hits up to the limit, which is all that the server counts. */
function checkOptions({ ban, continueExceeding, exponentialBackoff }: PluginOptions): void {
  if (typeof ban === 'number' && ban > 0) throw new TypeError('cellserver: ban is 0 or not used with this store: denied hits are not counted. A policy with BAN bans')
  if (continueExceeding) throw new TypeError('cellserver: continueExceeding is not supported by this store')
  if (exponentialBackoff) throw new TypeError('cellserver: exponentialBackoff is not supported by this store. A policy with BAN has bans that grow')
}

interface StoreClass {
  new (globalOptions: unknown): { child(route: PluginOptions): object }
  /** The limiter, whose `close` ends the connection of all stores of the class. */
  readonly limiter: Limiter
}

/** Returns a class for the option `store` of @fastify/rate-limit. Its limits are those of the plugin, as `SW max window FIXED`. It throws for a `ban` above 0, `continueExceeding` and `exponentialBackoff`. */
export function rateLimitStore(options: Omit<LimiterOptions, 'key' | 'limits'>): StoreClass {
  const { policy = 'fastify', ...rest } = options
  const shared = new Limiter({ ...rest, policy, limits: 'SW 1 1 FIXED' })
  return class CellserverStore {
    static readonly limiter = shared
    readonly prefix: string

    constructor(globalOptions: unknown, prefix = '') {
      checkOptions((globalOptions ?? {}) as PluginOptions)
      this.prefix = prefix
    }

    incr(key: string, callback: Callback, timeWindow: number, max: number): void {
      limiterOfWindow(shared, policy, max, timeWindow).check(this.prefix + key).then(
        (result) => {
          if (!result.allowed && result.source === 'unavailable') return callback(new Error('cellserver: the server does not decide'))
          return callback(null, { current: hitsOf(result, max), ttl: result.retryAfterMs ?? result.resetAfterMs ?? timeWindow })
        },
        (error: Error) => callback(error),
      )
    }

    child(route: PluginOptions): CellserverStore {
      const { method = '', url = '' } = route.routeInfo ?? {}
      return new CellserverStore(route, `${method}${url}|`)
    }
  }
}

export default cellserver
