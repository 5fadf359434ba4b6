/**
 * The header fields and the body that tell a client about its limits, by draft-ietf-httpapi-ratelimit-headers-11, and
 * the older X-RateLimit-*.
 */

/** Which fields an answer has. Retry-After is part of every style but `none`. */
export type HeaderStyle = 'draft' | 'x' | 'both' | 'none'

/** The decision on one limit. */
export interface HeaderClause {
  denies?: boolean
  limit: number
  remaining: number
  retryMillis: number
  resetMillis: number
  /** 0 if the limit has no window, or one of the calendar. */
  windowMillis?: number
  /** Whether the units are places for requests that run. */
  concurrent?: boolean
  unlimited?: boolean
}

/** The decision on a call under one policy. */
export interface HeaderAnswer {
  policy: string
  denied: boolean
  blocked?: boolean
  /** The clause whose numbers are those of the call. */
  binding: HeaderClause
  clauses: HeaderClause[]
}

export type Field = [name: string, value: string]

/** The body of a denial: application/problem+json. */
export interface Problem {
  type: string
  title: string
  status: number
  'violated-policies'?: string[]
}

const maxInteger = 999_999_999_999_999 // of structured fields, RFC 9651 section 3.3.1

const secondsUp = (ms: number): number => Math.ceil(Math.max(ms, 0) / 1000)
const parameter = (name: string, n: number): string => `;${name}=${Math.min(Math.max(n, 0), maxInteger)}`
const nameOf = (policy: string, i: number): string => (i > 0 ? `${policy}#${i + 1}` : policy)

/** Returns the header fields for an answer. A call that never passes has no Retry-After. */
export function headerFields(a: HeaderAnswer, style: HeaderStyle): Field[] {
  if (style === 'none') return []
  const fields: Field[] = []
  if (style !== 'x') draft(fields, a)
  if (style !== 'draft') older(fields, a)
  const seconds = retryAfter(a)
  if (seconds !== undefined) fields.push(['Retry-After', String(seconds)])
  return fields
}

function draft(fields: Field[], a: HeaderAnswer): void {
  let policies = ''
  let limits = ''
  for (let i = 0; i < a.clauses.length; i++) {
    const c = a.clauses[i]!
    const item = `"${nameOf(a.policy, i)}"`
    if (!c.unlimited) {
      const window = c.windowMillis ?? 0
      policies += `${policies && ', '}${item}${parameter('q', c.limit)}${c.concurrent ? ';qu="concurrent-requests"' : ''}${window > 0 ? parameter('w', secondsUp(window)) : ''}`
    }
    if (!c.unlimited || c.denies) {
      const t = a.denied ? (c.denies ? secondsUp(c.retryMillis) : 0) : secondsUp(c.resetMillis)
      limits += `${limits && ', '}${item}${parameter('r', c.remaining)}${t > 0 ? parameter('t', t) : ''}`
    }
  }
  if (policies) fields.push(['RateLimit-Policy', policies])
  if (limits) fields.push(['RateLimit', limits])
}

function older(fields: Field[], a: HeaderAnswer): void {
  const c = a.binding
  if (!c.unlimited) fields.push(['X-RateLimit-Limit', String(c.limit)])
  if (c.unlimited && !a.denied) return
  fields.push(['X-RateLimit-Remaining', String(c.remaining)])
  const reset = a.denied ? c.retryMillis : c.resetMillis
  if (reset >= 0) fields.push(['X-RateLimit-Reset', String(secondsUp(reset))])
}

function retryAfter(a: HeaderAnswer): number | undefined {
  if (!a.denied || a.binding.retryMillis < 0) return undefined
  let ms = a.binding.retryMillis
  for (const c of a.clauses) {
    if (!c.denies) continue
    if (c.retryMillis < 0) return undefined
    ms = Math.max(ms, c.retryMillis)
  }
  return Math.max(secondsUp(ms), 1)
}

const types = 'https://iana.org/assignments/http-problem-types#'

/** Returns the body of a denial with this status. */
export function problemOf(a: HeaderAnswer, status: number): Problem {
  if (a.blocked) {
    return {
      type: `${types}abnormal-usage-detected`,
      title: 'Request not satisfied due to detection of abnormal request pattern',
      status,
      'violated-policies': [a.policy],
    }
  }
  const violated = a.clauses.flatMap((c, i) => (c.denies ? [nameOf(a.policy, i)] : []))
  return {
    type: `${types}quota-exceeded`,
    title: 'Request cannot be satisfied as assigned quota has been exceeded',
    status,
    'violated-policies': violated,
  }
}
