/** Keys: what a request is limited by. */

import { createHash } from 'node:crypto'
import { Addresses, type AddressOptions } from './address.js'

/** A function that names the key of a request. A request without a key is not limited. */
export type KeyOf<R> = (request: R) => string | undefined | null | Promise<string | undefined | null>

/** What keys read of a request. */
export interface View {
  peer: string | undefined
  /** Returns all values of a header field, whose name is in lower case. */
  header(name: string): string[]
  /** The address that the framework has found, if it looks for one. */
  ip: string | undefined
}

interface NodeLike {
  headers?: Record<string, string | string[] | undefined> | Headers
  socket?: { remoteAddress?: string | undefined } | null
  ip?: string
}
interface HonoLike {
  req?: { raw?: { headers?: Headers } }
  env?: { incoming?: NodeLike }
}

/**
 * Returns the view of a request of Node, Express, Fastify, Nest or Hono, or of a web Request. Other objects have neither a
 * peer nor header fields.
 */
export function viewOf(request: unknown): View {
  const hono = request as HonoLike
  if (typeof hono.req?.raw?.headers?.get === 'function') return webView(hono.req.raw.headers, hono.env?.incoming?.socket?.remoteAddress)
  const node = request as NodeLike
  const headers = node.headers
  if (headers !== undefined && typeof (headers as Headers).get === 'function') return webView(headers as Headers, node.socket?.remoteAddress)
  return new NodeView(node)
}

/** The view of a request of Node, which reads what is asked for. */
class NodeView implements View {
  readonly #request: NodeLike

  constructor(request: NodeLike) {
    this.#request = request
  }

  get peer(): string | undefined {
    return this.#request.socket?.remoteAddress
  }

  get ip(): string | undefined {
    return this.#request.ip
  }

  header(name: string): string[] {
    return [(this.#request.headers as Record<string, string | string[] | undefined> | undefined)?.[name] ?? []].flat()
  }
}

function webView(headers: Headers, peer: string | undefined): View {
  return { peer, header: (name) => [headers.get(name) ?? []].flat(), ip: undefined }
}

/** The number of bytes above which a key is replaced by its digest. */
const maxKeyBytes = 128

/** Returns the first 16 bytes of the SHA-256 of text in hex, which stands for secrets and long keys. */
export function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32)
}

/** Returns key, or its digest if it has more than 128 bytes. */
export function bounded(key: string): string {
  return key.length * 3 > maxKeyBytes && Buffer.byteLength(key) > maxKeyBytes ? digest(key) : key
}

/** Returns the key of several parts, so that no two lists of parts have the same key. */
export function combined(parts: string[]): string {
  return parts.map((part) => part.replaceAll('%', '%25').replaceAll('|', '%7C')).join('|')
}

let warned = false

function warnOnce(view: View): void {
  if (warned || view.header('x-forwarded-for').length === 0) return
  warned = true
  process.emitWarning(
    'requests have X-Forwarded-For, which is not believed: if there is a proxy in front, all its clients share one key. ' +
      'Say ip({ trustedHops: 1 }) for one proxy, or ip({ trustedNetworks: [...] })',
    { type: 'CellserverWarning' },
  )
}

/**
 * Limits by the address of the client. An IPv6 client is its network of 64 bits. Without options the address is that of
 * the connection, and no header is believed. `'framework'` takes what the framework has found: `req.ip` with `trust proxy`
 * of Express, or `trustProxy` of Fastify.
 */
export function ip(options: AddressOptions | 'framework' = {}): (request: unknown) => string {
  const addresses = new Addresses(options === 'framework' ? {} : options)
  return (request) => {
    const view = viewOf(request)
    if (options === 'framework') return addresses.key(view.ip, [])
    if (!addresses.trusts) {
      warnOnce(view)
      return addresses.key(view.peer, [])
    }
    return addresses.key(view.peer, view.header('x-forwarded-for'))
  }
}

/** Limits by a header field. A secret one, which is the default, becomes its digest. A request without it is not limited. */
export function header(name: string, { secret = true } = {}): (request: unknown) => string | undefined {
  const lower = name.toLowerCase()
  return (request) => {
    const values = viewOf(request).header(lower)
    if (values.length === 0) return undefined
    const value = values.join(', ')
    return secret ? digest(value) : value
  }
}

/** Limits by several keys together. A request without one of them is not limited. */
export function combine<R>(...keys: KeyOf<R>[]): KeyOf<R> {
  return async (request) => {
    const parts: string[] = []
    for (const key of keys) {
      const part = await key(request)
      if (part === undefined || part === null) return undefined
      parts.push(part)
    }
    return combined(parts)
  }
}
