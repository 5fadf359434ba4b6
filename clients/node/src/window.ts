/** What is known of the clauses of a policy beside the numbers of its replies. */

import { parseClause, type Clause } from './clause.js'
import { UnexpectedReply } from './result.js'

/** What header fields say of a clause beside its numbers. */
export interface Window {
  windowMillis: number
  concurrent: boolean
  unlimited: boolean
}

export const noWindow: Window = { windowMillis: 0, concurrent: false, unlimited: false }

export function windowOf(clause: Clause): Window {
  return { windowMillis: clause.family === 'SW' ? clause.periodMs : 0, concurrent: clause.family === 'CC', unlimited: clause.family === 'NONE' }
}

/** Returns the clauses in a reply of RL.POLICY GET, which is a map or a list of names and values. */
export function clausesOf(reply: unknown): Clause[] {
  const list = Array.isArray(reply) ? reply : reply instanceof Map ? [...reply].flat() : Object.entries(reply as object).flat()
  const field = (name: string): unknown => list[list.indexOf(name) + 1]
  const limits = field('limits')
  if (!Array.isArray(limits)) throw new UnexpectedReply()
  return limits.map((text) => parseClause(String(text), Number(field('ms')) === 1 ? 1 : 1000))
}
