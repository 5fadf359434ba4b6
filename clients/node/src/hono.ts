/** Middleware for Hono. */

import { admit, denialOf, type MiddlewareOptions } from './answer.js'
import { Limiter } from './limiter.js'

/** The part of a context of Hono that is used, beside what keys read. */
export interface ContextLike {
  res: Response
}

export interface Middleware<C extends ContextLike> {
  (c: C, next: () => Promise<void>): Promise<Response | undefined>
  /** The limiter, whose `close` ends its connection. */
  limiter: Limiter<C>
}

/** Returns middleware that limits requests. The address of the peer is known with @hono/node-server. */
export function cellserver<C extends ContextLike>(options: MiddlewareOptions<C> | Limiter<C>): Middleware<C> {
  const limiter = options instanceof Limiter ? options : new Limiter<C>(options)
  const charges = options instanceof Limiter ? {} : options
  const middleware = async (c: C, next: () => Promise<void>): Promise<Response | undefined> => {
    const admission = await admit(limiter, charges, c)
    if (admission === undefined) {
      await next()
      return undefined
    }
    const { result } = admission
    if (!result.allowed) {
      const { status, fields, body } = denialOf(limiter, result)
      admission.ended?.(status)
      return new Response(body, { status, headers: fields })
    }
    const fields = limiter.headers(result)
    try {
      await next()
    } finally {
      admission.ended?.(c.res.status)
    }
    for (const [name, value] of fields) if (!c.res.headers.has(name)) c.res.headers.set(name, value)
    return undefined
  }
  return Object.assign(middleware, { limiter })
}

export default cellserver
