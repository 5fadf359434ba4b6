/** A store for express-rate-limit, and for hono-rate-limiter. */

import { Limiter } from './limiter.js'
import { type LimiterOptions } from './options.js'
import { hitsOf, limiterOfWindow } from './store.js'

interface Info {
  totalHits: number
  resetTime: Date | undefined
}

interface RateLimitOptions {
  windowMs: number
  limit: number | unknown
}

/** The largest number of keys of which denials are remembered. */
const maxDenied = 10_000

/**
 * A store. With `policy` the policy of the server decides. Without one, the limit and the window of express-rate-limit
 * do, as `SW limit window FIXED`; its limit is a number then.
 */
export class CellserverStore {
  /** The store is shared by processes: express-rate-limit asks. */
  readonly localKeys = false
  readonly #limiter: Limiter
  readonly #policy: string | undefined
  #window: Limiter
  #limit: number | undefined
  /** How many increments of a key have charged nothing and were not taken back. The oldest keys are forgotten. */
  readonly #denied = new Map<string, number>()

  constructor(options: Omit<LimiterOptions, 'key' | 'limits'>) {
    this.#policy = options.policy
    this.#limiter = new Limiter(options.policy === undefined ? { ...options, policy: 'express', limits: 'SW 1 1 FIXED' } : options)
    this.#window = this.#limiter
  }

  /** Takes over the options of express-rate-limit, which calls it. */
  init(options: RateLimitOptions): void {
    if (typeof options.limit === 'number') this.#limit = options.limit
    if (this.#policy !== undefined) return
    if (this.#limit === undefined) throw new TypeError('a limit that is a function needs a policy of the server: the store does not see the request')
    this.#window = limiterOfWindow(this.#limiter, 'express', this.#limit, options.windowMs)
  }

  increment(key: string): Promise<Info> {
    return this.#hits(key, 1)
  }

  /** Gives a unit back. express-rate-limit also takes back what was denied, with skipFailedRequests: that has taken nothing. */
  async decrement(key: string): Promise<void> {
    const denied = this.#denied.get(key) ?? 0
    if (denied > 1) this.#denied.set(key, denied - 1)
    else this.#denied.delete(key)
    if (denied === 0) await this.#window.check(key, { cost: -1 })
  }

  get(key: string): Promise<Info> {
    return this.#hits(key, 0)
  }

  /** Forgets what a key has used. With a policy it needs +rl.reset. */
  async resetKey(key: string): Promise<void> {
    await this.#window.reset(key)
  }

  /** Ends the connection. */
  shutdown(): Promise<void> {
    return this.#limiter.close()
  }

  /** Remembers that an increment has charged nothing. */
  #note(key: string): void {
    const denied = this.#denied.get(key) ?? 0
    this.#denied.delete(key)
    if (this.#denied.size >= maxDenied) this.#denied.delete(this.#denied.keys().next().value!)
    this.#denied.set(key, denied + 1)
  }

  async #hits(key: string, cost: number): Promise<Info> {
    const result = await this.#window.check(key, { cost })
    if (cost > 0 && (!result.allowed || result.source !== 'server')) this.#note(key)
    if (!result.allowed && result.source === 'unavailable') throw new Error('cellserver: the server does not decide')
    const wait = result.retryAfterMs ?? result.resetAfterMs
    return {
      totalHits: cost === 0 ? result.limit - result.remaining : hitsOf(result, this.#limit ?? result.limit),
      resetTime: wait === undefined ? undefined : new Date(Date.now() + wait),
    }
  }
}

export default CellserverStore
