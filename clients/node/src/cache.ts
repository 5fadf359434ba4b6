import { after, type Decision } from './result.js'

/** The largest number of denials that are kept. */
const maxEntries = 10_000

interface Entry {
  decision: Decision
  cost: number
  atMs: number
  untilMs: number
}

/**
 * A cache repeats denials from memory. A denial with a wait is kept for that wait, and at most for its cap. It answers calls of
 * the same scope with at least the same cost, which is not above a limit: such calls never pass. At 10,000 entries the one that was not used for longest makes room.
 */
export class DenialCache {
  readonly #mostMs: number
  readonly #entries = new Map<string, Entry>() // in the order of use, the latest last

  constructor(mostMs: number) {
    this.#mostMs = mostMs
  }

  get size(): number {
    return this.#entries.size
  }

  /** Keeps a denial that was received at nowMs. Other decisions, and denials with nothing to wait for, are not kept. */
  put(scope: string, cost: number, decision: Decision, nowMs: number): void {
    if (this.#mostMs <= 0 || cost <= 0 || decision.refused === 0 || decision.retryAfterMs <= 0) return
    this.#entries.delete(scope)
    if (this.#entries.size >= maxEntries) this.#entries.delete(this.#entries.keys().next().value!)
    this.#entries.set(scope, { decision, cost, atMs: nowMs, untilMs: nowMs + Math.min(decision.retryAfterMs, this.#mostMs) })
  }

  /** Returns the denial of a call at nowMs, with what is left of its wait. */
  get(scope: string, cost: number, nowMs: number): Decision | undefined {
    if (cost <= 0) return undefined
    const entry = this.#entries.get(scope)
    if (entry === undefined) return undefined
    if (nowMs >= entry.untilMs) {
      this.#entries.delete(scope)
      return undefined
    }
    if (cost < entry.cost || entry.decision.clauses.some((c) => cost > c.limit)) return undefined
    this.#entries.delete(scope)
    this.#entries.set(scope, entry)
    return after(entry.decision, nowMs - entry.atMs)
  }

  /** Forgets a denial, because units were given back. */
  forget(scope: string): void {
    this.#entries.delete(scope)
  }
}

/** Returns the scope of a denial: the calls for which it holds agree in all of these. */
export function scopeOf(...parts: (string | undefined)[]): string {
  return parts.map((part) => (part ? `${part.length}:${part}` : '')).join('|')
}
