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
  /** Has to be told the status of the response, or undefined if there was none. It is there with chargeWhen alone. */
  ended?: (status: number | undefined) => void
}

/** Admits a request: `undefined` is one that is not limited. */
export async function admit<R>(limiter: Limiter<R>, { chargeWhen }: Pick<MiddlewareOptions<R>, 'chargeWhen'>, request: R): Promise<Admission | undefined> {
  if (chargeWhen === undefined) {
    const result = await limiter.decide(request)
    return result && { result }
  }
  const reservation = await limiter.reserveFor(request)
  if (reservation === undefined) return undefined
  const ended = (status: number | undefined): void => {
    void (status !== undefined && chargeWhen(status) ? reservation.commit() : reservation.cancel())
  }
  return { result: reservation.result, ended }
}

/** A response of Node. */
interface NodeResponse {
  once(event: 'close', listener: () => void): unknown
  readonly closed: boolean
  readonly destroyed: boolean
  readonly headersSent: boolean
  readonly statusCode: number
}

/** Tells an admission how the response ends. A client that goes after the header was sent has had the status. */
export function follow({ ended }: Admission, response: NodeResponse): void {
  if (ended === undefined) return
  const tell = (): void => ended(response.headersSent ? response.statusCode : undefined)
  if (response.closed || response.destroyed) tell()
  else response.once('close', tell)
}
