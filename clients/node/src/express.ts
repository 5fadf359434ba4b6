/** Middleware for Express and for every other framework with `(req, res, next)` on Node's own request and response. */

import { type IncomingMessage, type ServerResponse } from 'node:http'
import { addFields, admit, denialOf, follow, setFields, type MiddlewareOptions } from './answer.js'
import { Limiter } from './limiter.js'

export interface Middleware<R> {
  (req: R, res: ServerResponse, next: (error?: unknown) => void): void
  /** The limiter, whose `close` ends its connection. */
  limiter: Limiter<R>
}

/** Returns middleware that limits requests. A limiter may be shared by several. */
export function cellserver<R extends IncomingMessage = IncomingMessage>(options: MiddlewareOptions<R> | Limiter<R>): Middleware<R> {
  const limiter = options instanceof Limiter ? options : new Limiter<R>(options)
  const charges = options instanceof Limiter ? {} : options
  const middleware = (req: R, res: ServerResponse, next: (error?: unknown) => void): void => {
    // A fault of what comes behind is not one of the limiter: so next is not called within a try.
    admit(limiter, charges, req, (admission) => {
      if (admission === undefined) return next()
      const { result } = admission
      follow(admission, res)
      if (result.allowed) {
        addFields(res, limiter.headers(result))
        return next()
      }
      const denial = denialOf(limiter, result)
      setFields(res, denial.fields)
      res.statusCode = denial.status
      res.end(denial.body)
    }, next)
  }
  return Object.assign(middleware, { limiter })
}

export default cellserver
