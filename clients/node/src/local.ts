/** The limiter in the process: for the time in which the server is away, and for tests. It decides as the server does. */

import { clauseText, localOf, shareOf, unitsOf, type Clause } from './clause.js'
import { type Decision, type Numbers } from './result.js'

/** The largest number of keys. Further ones share one state: evicting would give an attacker new allowances. */
const maxKeys = 100_000

const never = -1n

/** The answer of one clause. Times are in nanoseconds. */
interface Answer {
  refused: bigint
  limit: bigint
  remaining: bigint
  retry: bigint
  reset: bigint
}

interface Call {
  now: bigint
  cost: bigint
  peek: boolean
  member: string
}

/** The state of one clause for one key. decide returns the answer and what to do to take the units. */
interface State {
  decide(call: Call): { answer: Answer; take?: () => Answer }
  release?(member: string): void
}

/** How often a full table is searched for keys that are unused again, at most. */
const sweepNs = 1_000_000_000n

const max = (a: bigint, b: bigint): bigint => (a > b ? a : b)
const min = (a: bigint, b: bigint): bigint => (a < b ? a : b)
const ceilDiv = (a: bigint, b: bigint): bigint => (a + b - 1n) / b
const ns = (ms: number): bigint => BigInt(Math.round(ms * 1000)) * 1000n

/** Returns the time of one unit, trunc(period / count) by floating point as redis-cell has it, and at least 1 ns. */
function intervalOf(clause: Clause): bigint {
  return max(1n, BigInt(Math.trunc(Number(ns(clause.periodMs)) / Number(clause.count))))
}

/** TB GREEDY and CL: an instant at which nothing is in use any more, the theoretical arrival time. */
class Bucket implements State {
  readonly #limit: bigint
  readonly #interval: bigint
  readonly #cell: boolean
  #at = 0n

  constructor(clause: Clause) {
    this.#cell = clause.family === 'CL'
    this.#limit = clause.limit + (this.#cell ? 1n : 0n)
    this.#interval = intervalOf(clause)
  }

  #answer(debt: bigint): Answer {
    const remaining = max(0n, min(this.#limit, this.#limit - ceilDiv(debt, this.#interval)))
    return { refused: 0n, limit: max(0n, this.#limit), remaining, retry: never, reset: debt }
  }

  decide({ now, cost }: Call): { answer: Answer; take?: () => Answer } {
    const debt = max(0n, this.#at - now)
    const answer = this.#answer(debt)
    if (this.#limit <= 0n && cost > 0n) return { answer: { ...answer, refused: 1n } }
    const next = max(0n, debt + this.#interval * cost)
    const over = this.#interval * (this.#limit - cost)
    if ((cost >= 0n || this.#cell) && debt > over) {
      // A CL call that gives units back is denied while more than its limit stays in use.
      return { answer: { ...answer, refused: 1n, retry: cost > this.#limit ? never : debt - over } }
    }
    return {
      answer,
      take: () => {
        if (cost === 0n) return answer
        this.#at = now + next
        return this.#answer(next)
      },
    }
  }
}

/** SW FIXED and COUNTER: the units of the window and of the one before, in windows that begin at multiples of their length. */
class Windows implements State {
  readonly #limit: bigint
  readonly #window: bigint
  readonly #sliding: boolean
  #start = 0n
  #current = 0n
  #previous = 0n

  constructor(clause: Clause) {
    this.#limit = clause.limit
    this.#window = ns(clause.periodMs)
    this.#sliding = clause.options[0] !== 'FIXED'
  }

  #roll(now: bigint): bigint {
    const start = now - (now % this.#window)
    if (start > this.#start) {
      this.#previous = this.#sliding && start - this.#start === this.#window ? this.#current : 0n
      this.#current = 0n
      this.#start = start
    }
    return max(0n, now - this.#start)
  }

  #used(elapsed: bigint): bigint {
    return this.#current + (this.#previous * (this.#window - elapsed)) / this.#window
  }

  /** Returns the earliest time since the start of a window at which at most room of the n units of the window before count. */
  #decayed(n: bigint, room: bigint): bigint {
    return this.#window - ceilDiv((room + 1n) * this.#window, n) + 1n
  }

  #answer(elapsed: bigint): Answer {
    let reset = 0n
    if (this.#current > 0n) reset = this.#window - elapsed + (this.#sliding ? this.#decayed(this.#current, 0n) : 0n)
    else if (this.#used(elapsed) > 0n) reset = this.#decayed(this.#previous, 0n) - elapsed
    return { refused: 0n, limit: this.#limit, remaining: max(0n, this.#limit - this.#used(elapsed)), retry: never, reset }
  }

  #retry(elapsed: bigint, cost: bigint): bigint {
    const room = this.#limit - cost
    if (this.#used(elapsed) <= room) return 0n
    if (!this.#sliding) return this.#window - elapsed
    if (this.#current <= room) return this.#decayed(this.#previous, room - this.#current) - elapsed
    return this.#window - elapsed + this.#decayed(this.#current, room)
  }

  decide({ now, cost }: Call): { answer: Answer; take?: () => Answer } {
    const elapsed = this.#roll(now)
    const answer = this.#answer(elapsed)
    if (cost >= 0n && this.#used(elapsed) + cost > this.#limit) {
      return { answer: { ...answer, refused: 1n, retry: cost > this.#limit ? never : this.#retry(elapsed, cost) } }
    }
    return {
      answer,
      take: () => {
        const given = min(max(0n, -cost), this.#current)
        this.#current += max(0n, cost) - given
        this.#previous -= min(max(0n, -cost) - given, this.#previous)
        return this.#answer(elapsed)
      },
    }
  }
}

/** CC: members with leases. */
class Leases implements State {
  readonly #limit: bigint
  readonly #lease: bigint
  readonly #members = new Map<string, bigint>()

  constructor(clause: Clause) {
    this.#limit = clause.limit
    this.#lease = ns(clause.periodMs)
  }

  #answer(now: bigint): Answer {
    let last = now
    for (const until of this.#members.values()) last = max(last, until)
    return { refused: 0n, limit: this.#limit, remaining: max(0n, this.#limit - BigInt(this.#members.size)), retry: never, reset: last - now }
  }

  decide({ now, member, cost }: Call): { answer: Answer; take?: () => Answer } {
    for (const [name, until] of this.#members) if (until <= now) this.#members.delete(name)
    const answer = this.#answer(now)
    if (this.#limit === 0n || !this.#members.has(member) && BigInt(this.#members.size) >= this.#limit && cost > 0n) {
      const ends = [...this.#members.values()].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0))
      const end = this.#limit === 0n ? undefined : ends[this.#members.size - Number(this.#limit)]
      return { answer: { ...answer, refused: 1n, retry: end === undefined ? never : end - now } }
    }
    return {
      answer,
      take: () => {
        if (cost > 0n) this.#members.set(member, now + this.#lease)
        return this.#answer(now)
      },
    }
  }

  release(member: string): void {
    this.#members.delete(member)
  }
}

/** NONE never denies. */
class Unlimited implements State {
  decide(): { answer: Answer; take: () => Answer } {
    const answer = { refused: 0n, limit: 4294967295n, remaining: 4294967295n, retry: never, reset: 0n }
    return { answer, take: () => answer }
  }
}

/** Reports whether the limiter in the process decides a clause otherwise than the server. */
export function approximates(clause: Clause): boolean {
  const exact = { ...clause, options: clause.options.filter((word) => word !== 'GREEDY') }
  if (clause.family === 'SW' && exact.options.length === 0) exact.options = ['COUNTER']
  return clauseText(localOf(clause)) !== clauseText(exact)
}

function stateOf(clause: Clause): State {
  switch (clause.family) {
    case 'TB':
    case 'CL':
      return new Bucket(clause)
    case 'SW':
      return new Windows(clause)
    case 'CC':
      return new Leases(clause)
    default:
      return new Unlimited()
  }
}

/** The limiter of one set of clauses. */
export class LocalLimiter {
  readonly #clauses: Clause[]
  readonly #keys = new Map<string, State[]>()
  #shared: State[] | undefined
  #sweptAt = 0n

  /** Each of several instances has its share of the clauses. */
  constructor(clauses: Clause[], instances = 1) {
    this.#clauses = clauses.map((clause) => localOf(shareOf(clause, instances)))
  }

  #states(key: string, now: bigint): State[] {
    let states = this.#keys.get(key)
    if (states !== undefined) return states
    if (this.#keys.size >= maxKeys) this.#sweep(now)
    if (this.#keys.size >= maxKeys) return (this.#shared ??= this.#clauses.map(stateOf))
    states = this.#clauses.map(stateOf)
    this.#keys.set(key, states)
    return states
  }

  /** Removes the keys of which nothing is in use any more. */
  #sweep(now: bigint): void {
    if (now - this.#sweptAt < sweepNs) return
    this.#sweptAt = now
    const look: Call = { now, cost: 0n, peek: true, member: '' }
    for (const [key, states] of this.#keys) {
      if (states.every((state) => state.decide(look).answer.reset === 0n)) this.#keys.delete(key)
    }
  }

  /** Gives the places of a member back. */
  release(key: string, member: string): void {
    for (const state of this.#keys.get(key) ?? this.#shared ?? []) state.release?.(member)
  }

  /** Decides a call at an instant, in milliseconds since 1970: all clauses take the units, or none does. */
  decide(key: string, cost: number, nowMs: number, member = '', peek = false): Decision {
    const call: Call = { now: ns(nowMs), cost: BigInt(cost), peek, member }
    const calls = this.#clauses.map((clause) => (clause.calls ? { ...call, cost: BigInt(unitsOf(clause, cost)) } : call))
    const plans = this.#states(key, call.now).map((state, i) => state.decide(calls[i]!))
    const denied = plans.some((plan) => plan.answer.refused > 0n)
    return combine(plans.map((plan) => (denied || peek || plan.take === undefined ? plan.answer : plan.take())))
  }
}

const millis = (n: bigint): number => (n < 0n ? -1 : Number(ceilDiv(n, 1_000_000n)))

/** Returns the decision of several clauses: the binding one is the limited one with the least remaining, or else the one with the least. */
function combine(answers: Answer[]): Decision {
  const clauses: Numbers[] = answers.map((a) => ({
    refused: Number(a.refused), limit: Number(a.limit), remaining: Number(a.remaining), retryAfterMs: millis(a.retry), resetAfterMs: millis(a.reset),
  }))
  const limited = clauses.filter((c) => c.refused > 0)
  const from = limited.length > 0 ? limited : clauses
  const binding = from.reduce((least, c) => (c.remaining < least.remaining ? c : least))
  const retryAfterMs = limited.some((c) => c.retryAfterMs < 0) ? -1 : Math.max(-1, ...limited.map((c) => c.retryAfterMs))
  return { refused: binding.refused, limit: binding.limit, remaining: binding.remaining, retryAfterMs, resetAfterMs: Math.max(...clauses.map((c) => c.resetAfterMs)), clauses }
}
