/** What a middleware answers. */

import { type Field } from './headers.js'
import { type Limiter, type LimiterOptions } from './limiter.js'
import { type Result } from './result.js'

/** The options of a middleware. */
export interface MiddlewareOptions<R> extends LimiterOptions<R> {
  /**
   * Decides after the response whether the request is charged, by its status: for example only failed logins. The units
   * are reserved meanwhile.
   */
  chargeWhen?: (status: number) => boolean
}

/** The answer to a denied request. */
export interface Denial {
  status: number
  fields: Field[]
  body: string
}

/** Returns the answer to a denied request. */
export function denialOf<R>(limiter: Limiter<R>, result: Result): Denial {
  const problem = limiter.problem(result)
  return { status: problem.status, fields: [...limiter.headers(result), ['Content-Type', 'application/problem+json']], body: JSON.stringify(problem) }
}

/** A request that may go ahead, or not. */
export interface Admission {
  result: Result
  /** Tells the status of the response, or nothing if there was none. */
  ended(status: number | undefined): void
}

/** Admits a request: `undefined` is one that is not limited. */
export async function admit<R>(limiter: Limiter<R>, options: Pick<MiddlewareOptions<R>, 'chargeWhen'>, request: R): Promise<Admission | undefined> {
  const { chargeWhen } = options
  if (chargeWhen === undefined) {
    const result = await limiter.decide(request)
    return result && { result, ended: () => {} }
  }
  const reservation = await limiter.reserveFor(request)
  if (reservation === undefined) return undefined
  return {
    result: reservation.result,
    ended: (status) => void (status !== undefined && chargeWhen(status) ? reservation.commit() : reservation.cancel()),
  }
}
