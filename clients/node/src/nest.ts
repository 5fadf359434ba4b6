/** A storage for @nestjs/throttler, and a guard of our own. */

import { addFields, admission as admissionOf, denialOf, follow, setFields, type MiddlewareOptions, type NodeResponse } from './answer.js'
import { ReplyFields, type FastifyReplyLike } from './fastify.js'
import { Limiter } from './limiter.js'
import { type LimiterOptions } from './options.js'
import { hitsOf, limiterOfWindow } from './store.js'

interface ThrottlerRecord {
  totalHits: number
  timeToExpire: number
  isBlocked: boolean
  timeToBlockExpire: number
}

/**
 * A storage for the option `storage` of ThrottlerModule. Each named throttler is `SW limit ttl FIXED`. A client is denied until its
 * window ends. A `blockDuration` other than the ttl is an error of each request, because Nest names it to the storage only then.
 */
export class CellserverStorage {
  readonly #limiter: Limiter

  constructor(options: Omit<LimiterOptions, 'key' | 'limits' | 'policy'>) {
    this.#limiter = new Limiter({ ...options, policy: 'nest', limits: 'SW 1 1 FIXED' })
  }

  /** Ends the connection. Nest calls it for a provider, and an application otherwise. */
  onModuleDestroy(): Promise<void> {
    return this.#limiter.close()
  }

  async increment(key: string, ttl: number, limit: number, blockDuration: number, throttlerName: string): Promise<ThrottlerRecord> {
    if (blockDuration !== ttl) throw new TypeError(`cellserver: blockDuration of the throttler ${throttlerName} is not supported: take a guard with a policy that has BAN`)
    const result = await limiterOfWindow(this.#limiter, `nest.${throttlerName.replace(/[^A-Za-z0-9_.-]/g, '_')}`.slice(0, 64), limit, ttl).check(key)
    if (!result.allowed && result.source === 'unavailable') throw new Error('cellserver: the server does not decide')
    const seconds = (ms: number | undefined): number => Math.ceil((ms ?? 0) / 1000)
    return {
      totalHits: hitsOf(result, limit),
      timeToExpire: seconds(result.retryAfterMs ?? result.resetAfterMs),
      isBlocked: !result.allowed,
      timeToBlockExpire: result.allowed ? 0 : Math.max(1, seconds(result.retryAfterMs)),
    }
  }
}

interface ContextLike {
  switchToHttp(): { getRequest(): never; getResponse(): ResponseLike }
}

/** The response of Express, or the reply of Fastify. */
type ResponseLike = NodeResponse | FastifyReplyLike

/** A guard that limits by a policy, or by several limits at once: one round trip, whatever their number. */
export class CellserverGuard {
  readonly limiter: Limiter<never>
  readonly #options: Pick<MiddlewareOptions<never>, 'chargeWhen'>

  constructor(options: MiddlewareOptions<never> | Limiter<never>) {
    this.limiter = options instanceof Limiter ? options : new Limiter(options)
    this.#options = options instanceof Limiter ? {} : options
  }

  /** Ends the connection. Nest calls it for a provider, and an application otherwise. */
  onModuleDestroy(): Promise<void> {
    return this.limiter.close()
  }

  async canActivate(context: ContextLike): Promise<boolean> {
    const http = context.switchToHttp()
    const admission = await admissionOf(this.limiter, this.#options, http.getRequest())
    if (admission === undefined) return true
    const { result } = admission
    const response = http.getResponse()
    const [raw, fields] = 'raw' in response ? [response.raw, new ReplyFields(response)] : [response, response]
    follow(admission, raw)
    if (result.allowed) {
      addFields(raw, this.limiter.headers(result), fields)
      return true
    }
    const denial = denialOf(this.limiter, result)
    setFields(fields, denial.fields)
    const name = '@nestjs/common' // a module that only applications of Nest have
    const { HttpException } = (await import(name)) as { HttpException: new (body: unknown, status: number) => Error }
    throw new HttpException(JSON.parse(denial.body), denial.status)
  }
}
