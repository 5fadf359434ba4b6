/** Middleware for Hono. */

import { admission as admissionOf, carries, denialOf, follow, type Admission, type MiddlewareOptions } from './answer.js'
import { Limiter } from './limiter.js'

/** The part of a context of Hono that is used, beside what keys read. */
export interface ContextLike {
  res: Response
  req?: { readonly method?: string }
  /** With @hono/node-server it has the response of Node. */
  env?: unknown
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
    const admission = await admissionOf(limiter, charges, c)
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
    const { outgoing } = (c.env ?? {}) as { outgoing?: Parameters<typeof follow>[1] }
    if (outgoing !== undefined) follow(admission, outgoing)
    try {
      await next()
    } catch (error) {
      if (outgoing === undefined) admission.ended?.(undefined)
      throw error
    }
    if (outgoing === undefined) followBody(admission, c)
    if (!carries(c.res.status)) return undefined
    const fields = limiter.headers(result).filter(([name]) => !c.res.headers.has(name))
    try {
      for (const [name, value] of fields) c.res.headers.set(name, value)
    } catch {
      c.res = new Response(c.res.body, c.res) // that of fetch() cannot be changed
      for (const [name, value] of fields) c.res.headers.set(name, value)
    }
    return undefined
  }
  return Object.assign(middleware, { limiter })
}

/** Tells an admission how the response ends where there is no response of Node: once its body was read, or is not wanted any more. */
function followBody({ ended }: Admission, c: ContextLike): void {
  if (ended === undefined) return
  const { res } = c
  // Hono drops the body of a response to HEAD without reading it.
  const reader = c.req?.method === 'HEAD' ? undefined : res.body?.getReader()
  if (reader === undefined) return ended(res.status)
  const body = new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (!done) return controller.enqueue(value)
        controller.close()
      } catch (error) {
        controller.error(error)
      }
      return ended(res.status)
    },
    cancel(reason) {
      ended(res.status)
      return reader.cancel(reason)
    },
  })
  c.res = new Response(body, res)
}

export default cellserver
