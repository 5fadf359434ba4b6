/** What the stores for other packages share: they ask for a number of hits, and decide themselves. */

import { type Limiter } from './limiter.js'
import { type Result } from './result.js'

const limiters = new WeakMap<Limiter, Map<string, Limiter>>()

/** The largest number of pairs of limit and window that are kept. A package that makes more up pays for each anew. */
const maxWindows = 1000

/** Returns the limiter of a window on the connection of another limiter. */
export function limiterOfWindow(shared: Limiter, policy: string, max: number, windowMs: number): Limiter {
  let known = limiters.get(shared)
  if (known === undefined) limiters.set(shared, (known = new Map()))
  const clause = `SW ${Math.max(0, Math.floor(max))} ${Math.max(1, Math.ceil(windowMs))}ms FIXED`
  const name = `${policy}|${clause}`
  let limiter = known.get(name)
  if (limiter === undefined) {
    if (known.size >= maxWindows) known.clear()
    known.set(name, (limiter = shared.with({ policy, limits: clause })))
  }
  return limiter
}

/** Returns the number of hits that makes a package with this limit decide as the result says. */
export function hitsOf(result: Result, max: number): number {
  if (!result.allowed) return Math.max(max, result.limit) + 1
  if (result.policies.length === 0 && result.source === 'unavailable') return 1
  return Math.min(max, Math.max(1, result.limit - result.remaining))
}
