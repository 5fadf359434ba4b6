/** Where a decision has come from. `unavailable` is that of `onUnavailable` without a limiter in the process. */
export type Source = 'server' | 'cache' | 'local' | 'unavailable'

/** The five integers of a reply. */
export interface Numbers {
  /** 0 if the limit is not in the way, otherwise how many units were refused, or 1. */
  refused: number
  limit: number
  remaining: number
  /** Milliseconds until the same call would pass, or -1: it has passed, or waiting does not help. */
  retryAfterMs: number
  /** Milliseconds until no unit is in use, or -1. */
  resetAfterMs: number
}

/** What a reply says: the numbers of the call, and of each clause. */
export interface Decision extends Numbers {
  clauses: Numbers[]
}

/** What a call has taken under clauses with CC, until it is given back or its lease is over. */
export interface Place {
  key: string
  member: string
  /** Whether the limiter in the process has it. */
  local: boolean
}

/** The answer to a check. */
export interface Result {
  allowed: boolean
  limit: number
  remaining: number
  /** How many units were granted, which is less than the cost with `mode: 'PARTIAL'`. */
  granted: number
  /** Milliseconds until the same call would pass, or undefined if there is nothing to wait for. */
  retryAfterMs: number | undefined
  /** Milliseconds until no unit is in use, or undefined if that is not known. */
  resetAfterMs: number | undefined
  source: Source
  /** The numbers of each clause. It is empty unless the source is `server` or `cache`. */
  policies: Numbers[]
  /** Whether the cost is above a limit, so that the call never passes. */
  never: boolean
  /** Whether a block without an end has denied the call. */
  blocked: boolean
  /** What `release` gives back once the work is done, or undefined if the call has taken no place. */
  place: Place | undefined
}

/** The error for a reply that is not one of a limiter. */
export class UnexpectedReply extends Error {
  constructor() {
    super('the reply is not one of a limiter')
    this.name = 'UnexpectedReply'
  }
}

function integer(value: unknown): number {
  const n = typeof value === 'bigint' ? Number(value) : value
  if (!Number.isInteger(n)) throw new UnexpectedReply()
  return n as number
}

function numbers(value: unknown): Numbers {
  if (!Array.isArray(value) || value.length !== 5) throw new UnexpectedReply()
  return {
    refused: integer(value[0]),
    limit: integer(value[1]),
    remaining: integer(value[2]),
    retryAfterMs: Math.max(-1, integer(value[3])),
    resetAfterMs: Math.max(-1, integer(value[4])),
  }
}

/** Returns what a reply says: five integers, or a list of those and of a list of five integers for each clause. */
export function readReply(reply: unknown): Decision {
  if (!Array.isArray(reply) || reply.length === 0) throw new UnexpectedReply()
  if (!Array.isArray(reply[0])) {
    const n = numbers(reply)
    return decisionOf(n, [n])
  }
  if (reply.length !== 2 || !Array.isArray(reply[1]) || reply[1].length === 0) throw new UnexpectedReply()
  return decisionOf(numbers(reply[0]), reply[1].map(numbers))
}

function decisionOf({ refused, limit, remaining, retryAfterMs, resetAfterMs }: Numbers, clauses: Numbers[]): Decision {
  return { refused, limit, remaining, retryAfterMs, resetAfterMs, clauses }
}

/** Reports whether a call with this cost never passes, since the cost is above a limit. */
export function neverPasses(d: Decision, cost: number): boolean {
  if (d.refused === 0 || d.retryAfterMs !== -1) return false
  return cost > d.limit || d.clauses.some((c) => c.refused > 0 && c.retryAfterMs === -1 && cost > c.limit)
}

function later(n: Numbers, passedMs: number): Numbers {
  const less = (ms: number) => (ms === -1 ? -1 : Math.max(0, ms - passedMs))
  return { ...n, retryAfterMs: less(n.retryAfterMs), resetAfterMs: less(n.resetAfterMs) }
}

/** Returns the decision as it is after a time in which nothing was taken. */
export function after(d: Decision, passedMs: number): Decision {
  return { ...later(d, passedMs), clauses: d.clauses.map((c) => later(c, passedMs)) }
}

/** Returns the result of a decision on a call with this cost. partial says that the call takes what there is. */
export function resultOf(d: Decision, cost: number, source: Source, partial = false): Result {
  const never = neverPasses(d, cost)
  const waits = d.retryAfterMs !== -1
  const granted = d.refused === 0 || partial ? Math.max(cost - d.refused, 0) : 0
  return {
    allowed: granted > 0 || d.refused === 0,
    limit: d.limit,
    remaining: d.remaining,
    granted,
    retryAfterMs: waits ? d.retryAfterMs : undefined,
    resetAfterMs: d.resetAfterMs === -1 ? undefined : d.resetAfterMs,
    source,
    policies: source === 'server' || source === 'cache' ? d.clauses : [],
    never,
    blocked: d.refused > 0 && granted === 0 && !waits && !never,
    place: undefined,
  }
}
