/** The address of a client, from the connection and from X-Forwarded-For. */

import { isIPv4, isIPv6 } from 'node:net'

/** An address as its bytes: 4 of IPv4 and 16 of IPv6. */
export type Address = Uint8Array

/** A network: the addresses whose first bits are those of its own. */
export interface Network {
  address: Address
  bits: number
}

/** How the address of a client is found. With neither hops nor networks it is that of the peer. */
export interface AddressOptions {
  /** How many proxies of our own there are, the peer included. Each appends the address of its peer to X-Forwarded-For. */
  trustedHops?: number
  /** The networks of our own proxies, such as `10.0.0.0/8`. It excludes `trustedHops`. */
  trustedNetworks?: string[]
  /** How many bits of an IPv6 address make one key: 64, or fewer down to 48. */
  v6Prefix?: number
}

/** The key of all clients without a known address. */
export const unknownAddress = 'unknown'

function bytesOfV4(text: string): Address {
  return Uint8Array.from(text.split('.'), Number)
}

function bytesOfV6(text: string): Address {
  let plain = text
  const v4 = /[^:]*\.[^:]*$/.exec(text)
  if (v4) {
    const [a, b, c, d] = bytesOfV4(v4[0]) as unknown as [number, number, number, number]
    plain = text.slice(0, v4.index) + (a * 256 + b).toString(16) + ':' + (c * 256 + d).toString(16)
  }
  const [head = '', tail] = plain.split('::')
  const groups = (part: string) => (part ? part.split(':') : [])
  const before = groups(head)
  const behind = tail === undefined ? [] : groups(tail)
  const all = [...before, ...Array<string>(8 - before.length - behind.length).fill('0'), ...behind]
  return Uint8Array.from(all.flatMap((g) => [parseInt(g, 16) >> 8, parseInt(g, 16) & 255]))
}

function isPort(text: string): boolean {
  return /^:\d+$/.test(text) && Number(text.slice(1)) < 65536
}

/** Returns the address in text, without its port, brackets and zone. An IPv6 address that stands for an IPv4 one becomes that. */
export function parseAddress(text: string): Address | undefined {
  let host = text
  if (text.startsWith('[')) {
    const end = text.indexOf(']')
    host = text.slice(1, end)
    const port = text.slice(end + 1)
    if (end < 0 || port !== '' && !isPort(port) || !host.includes(':')) return undefined
  } else if (text.indexOf(':') === text.lastIndexOf(':') && text.includes(':')) {
    host = text.slice(0, text.indexOf(':'))
    if (!isPort(text.slice(host.length))) return undefined
  }
  if (isIPv4(host)) return bytesOfV4(host)
  const zone = host.indexOf('%')
  if (zone >= 0 && (zone === host.length - 1 || !host.includes(':'))) return undefined
  if (zone >= 0) host = host.slice(0, zone)
  if (!isIPv6(host)) return undefined
  const bytes = bytesOfV6(host)
  const mapped = bytes.subarray(0, 10).every((b) => b === 0) && bytes[10] === 255 && bytes[11] === 255
  return mapped ? bytes.slice(12) : bytes
}

/** Returns the network in text, such as `10.0.0.0/8`, or a single address. */
export function parseNetwork(text: string): Network {
  const [host = '', bits] = text.split('/')
  const address = isIPv4(host) || isIPv6(host) ? parseAddress(host) : undefined
  const width = address === undefined ? 0 : address.length * 8
  const n = bits === undefined ? width : /^\d+$/.test(bits) ? Number(bits) : NaN
  if (address === undefined || !(n <= width)) throw new TypeError(`trustedNetworks: ${JSON.stringify(text)} is not a network such as 10.0.0.0/8`)
  return { address: masked(address, n), bits: n }
}

/** Returns the network that a policy with KEY IP v4 v6 limits for a key, as the server names it, or the key if it is no address. */
export function networkKey(key: string, v4: number, v6: number): string {
  const address = parseAddress(key.replace(/\/\d+$/, ''))
  if (address === undefined) return key
  const bits = address.length === 4 ? v4 : v6
  const network = masked(address, bits)
  return `${network.length === 4 ? network.join('.') : textOfV6(network)}/${bits}`
}

function masked(address: Address, bits: number): Address {
  return address.map((byte, i) => byte & (0xff00 >> Math.max(0, Math.min(8, bits - 8 * i))) & 0xff)
}

function contains(network: Network, address: Address): boolean {
  if (network.address.length !== address.length) return false
  return masked(address, network.bits).every((byte, i) => byte === network.address[i])
}

/** Returns the canonical text of an IPv6 address (RFC 5952). */
function textOfV6(bytes: Address): string {
  const groups = Array.from({ length: 8 }, (_, i) => bytes[2 * i]! * 256 + bytes[2 * i + 1]!)
  let best = -1
  let most = 1
  for (let i = 0; i < 8; i++) {
    let n = 0
    while (i + n < 8 && groups[i + n] === 0) n++
    if (n > most) [best, most] = [i, n]
  }
  const hex = (part: number[]) => part.map((g) => g.toString(16)).join(':')
  return best < 0 ? hex(groups) : `${hex(groups.slice(0, best))}::${hex(groups.slice(best + most))}`
}

/** Yields the entries of all lines from the last one on. It splits no more than is asked for, since the header is as long as a client likes. */
function* backward(lines: readonly string[]): Generator<string> {
  for (let i = lines.length - 1; i >= 0; i--) {
    let line = lines[i]!
    for (;;) {
      const at = line.lastIndexOf(',')
      yield line.slice(at + 1).replace(/^[ \t]+|[ \t]+$/g, '')
      if (at < 0) break
      line = line.slice(0, at)
    }
  }
}

/** Finds the addresses of clients. */
export class Addresses {
  readonly #hops: number
  readonly #networks: Network[]
  readonly #v6Prefix: number

  constructor(options: AddressOptions = {}) {
    this.#hops = options.trustedHops ?? 0
    this.#networks = (options.trustedNetworks ?? []).map(parseNetwork)
    this.#v6Prefix = options.v6Prefix ?? 64
    if (!Number.isInteger(this.#hops) || this.#hops < 0) throw new TypeError('trustedHops is a number from 0 on')
    if (this.#hops > 0 && this.#networks.length > 0) throw new TypeError('trustedHops and trustedNetworks exclude each other')
    if (!Number.isInteger(this.#v6Prefix) || this.#v6Prefix < 48 || this.#v6Prefix > 64) throw new TypeError('v6Prefix is a number from 48 to 64')
  }

  /** Whether a header is believed at all. */
  get trusts(): boolean {
    return this.#hops > 0 || this.#networks.length > 0
  }

  /**
   * Returns the key of a client: an IPv4 address, or the network of an IPv6 address. peer is the address of the connection,
   * and forwarded has the lines of X-Forwarded-For. Where the entry that counts is missing or no address, the client is the peer.
   */
  key(peer: string | undefined, forwarded: readonly string[]): string {
    if (!this.trusts && peer !== undefined && isIPv4(peer)) return peer // the commonest case
    const own = peer === undefined ? undefined : parseAddress(peer)
    if (own === undefined && this.#hops === 0) throw new TypeError('the peer has no address: a Unix socket needs trustedHops')
    let found = own
    if (this.#hops > 0) {
      let n = this.#hops
      for (const entry of backward(forwarded)) {
        if (--n > 0) continue
        found = parseAddress(entry) ?? own
        break
      }
    } else if (this.#networks.length > 0) {
      found = this.#untrusted(own!, forwarded)
    }
    return found === undefined ? unknownAddress : this.#text(found)
  }

  #trusted(address: Address): boolean {
    return this.#networks.some((network) => contains(network, address))
  }

  #untrusted(own: Address, forwarded: readonly string[]): Address {
    if (!this.#trusted(own)) return own
    let client = own
    for (const entry of backward(forwarded)) {
      const next = parseAddress(entry)
      if (next === undefined) return own
      client = next
      if (!this.#trusted(client)) break
    }
    return client
  }

  #text(address: Address): string {
    if (address.length === 4) return address.join('.')
    return `${textOfV6(masked(address, this.#v6Prefix))}/${this.#v6Prefix}`
  }
}
