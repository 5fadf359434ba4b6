/** What a middleware answers. */

import { type Field } from './headers.js'
import { type Limiter } from './limiter.js'
import { type LimiterOptions } from './options.js'
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
  /**
   * Has to be told the status of the response once it has ended, or undefined if there was none. It charges with
   * chargeWhen, and gives the places of CC back. Undefined if there is nothing to do.
   */
  ended: ((status: number | undefined) => void) | undefined
}

/** Admits a request and calls admitted with `undefined` if it is not limited, or failed with a fault of the program. */
export function admit<R>(
  limiter: Limiter<R>,
  { chargeWhen }: Pick<MiddlewareOptions<R>, 'chargeWhen'>,
  request: R,
  admitted: (admission: Admission | undefined) => void,
  failed: (fault: unknown) => void,
): void {
  if (chargeWhen === undefined) {
    limiter.decide(request).then((result) => admitted(result && admissionOf(limiter, result)), failed)
    return
  }
  limiter.reserveFor(request).then((reservation) => admitted(reservation && {
    result: reservation.result,
    ended: (status) => {
      let charged = false
      try {
        charged = status !== undefined && chargeWhen(status)
      } catch (fault) {
        process.emitWarning(fault as Error) // thrown, it would end the process: the response has ended
      }
      void (charged ? reservation.commit() : reservation.cancel())
    },
  }), failed)
}

/** Admits a request as {@link admit} does, as a promise. */
export function admission<R>(limiter: Limiter<R>, charges: Pick<MiddlewareOptions<R>, 'chargeWhen'>, request: R): Promise<Admission | undefined> {
  return new Promise((resolve, reject) => admit(limiter, charges, request, resolve, reject))
}

function admissionOf<R>(limiter: Limiter<R>, result: Result): Admission {
  const { place } = result
  return { result, ended: place && (() => void limiter.release(place)) }
}

/** The part of a socket that is used. */
interface Closing {
  once(event: 'close', listener: () => void): unknown
  readonly destroyed: boolean
}

/** The part of a response of Node that is used. */
export interface NodeResponse {
  once(event: 'close', listener: () => void): unknown
  writeHead(status: number, ...rest: never[]): unknown
  hasHeader(name: string): boolean
  setHeader(name: string, value: string): unknown
  getHeaderNames(): string[]
  /** The request, whose socket the response shares. */
  readonly req?: { socket?: Closing | null } | undefined
  /** The stream of HTTP/2. */
  readonly stream?: { readonly destroyed: boolean } | undefined
  readonly closed: boolean
  readonly destroyed: boolean
  readonly headersSent: boolean
  readonly statusCode: number
}

/** Tells an admission how the response ends, also if its connection breaks. A client that goes after the header was sent has had the status. */
export function follow({ ended }: Admission, response: Pick<NodeResponse, 'once' | 'closed' | 'destroyed' | 'headersSent' | 'statusCode' | 'req' | 'stream'>): void {
  if (ended === undefined) return
  let told = false
  const tell = (): void => {
    if (told) return
    told = true
    forget()
    ended(response.headersSent ? response.statusCode : undefined)
  }
  let forget = (): void => {}
  const { stream } = response
  const socket = stream === undefined ? response.req?.socket : undefined
  // A response of HTTP/2 has no closed and destroyed of its own, and none at all once its stream is gone.
  if (response.closed || response.destroyed || 'stream' in response && (stream?.destroyed ?? true) || socket?.destroyed) return tell()
  response.once('close', tell)
  // A response behind another one of a pipeline has no socket yet, and is not told that the connection breaks.
  if (socket) forget = whenClosed(socket, tell)
}

const closing = new WeakMap<object, Set<() => void>>()

/** Calls back when a socket closes, with one listener for all. The returned function takes that back. */
function whenClosed(socket: Closing, callback: () => void): () => void {
  let callbacks = closing.get(socket)
  if (callbacks === undefined) {
    const all = callbacks = new Set()
    closing.set(socket, all)
    socket.once('close', () => { for (const each of [...all]) each() })
  }
  callbacks.add(callback)
  return () => void callbacks.delete(callback)
}

/** Reports whether a response with this status has header fields of limits. A redirection and an outage have none. */
export function carries(status: number): boolean {
  return status !== 503 && (status < 300 || status >= 400)
}

/** Where header fields are set: a response of Node, or of a framework that keeps them itself. */
export interface Fields {
  hasHeader(name: string): boolean
  setHeader(name: string, value: string): unknown
}

/**
 * Adds header fields to a response when its header is written, because its status is not known before. Those that are there
 * then are kept: an inner limiter wins. A framework gives its own fields with the status, or has set them before.
 */
export function addFields(response: NodeResponse, fields: Field[], framework: Fields = response): void {
  if (fields.length === 0) return
  const write = response.writeHead
  let added = false
  response.writeHead = function (this: NodeResponse, status: number, ...rest: never[]): unknown {
    if (added || !carries(status)) return write.call(this, status, ...rest)
    added = true
    const list = rest.at(-1) as unknown
    // Node merges a list into fields that were set one by one, and then keeps one of several with a name: so none is set.
    if (Array.isArray(list) && this.getHeaderNames().length === 0) return write.call(this, status, ...rest.slice(0, -1), withFields(list, fields) as never)
    setFields(rest.length > 0 ? framework : this, fields)
    return write.call(this, status, ...rest)
  }
}

/** Returns a list of header fields, flat or of pairs, with those that it does not have. */
function withFields(list: unknown[], fields: Field[]): unknown[] {
  const pairs = Array.isArray(list[0])
  const names = new Set((pairs ? list.map((pair) => (pair as unknown[])[0]) : list.filter((_, i) => i % 2 === 0)).map((name) => String(name).toLowerCase()))
  const added = fields.filter(([name]) => !names.has(name.toLowerCase()))
  return [...list, ...(pairs ? added : added.flat())]
}

/** Sets those header fields that are not there. */
export function setFields(target: Fields, fields: Field[]): void {
  for (const [name, value] of fields) if (!target.hasHeader(name)) target.setHeader(name, value)
}
