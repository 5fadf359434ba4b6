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

/** Returns a field of a reply of RL.POLICY GET, which is a map or a list of names and values. */
function fieldOf(reply: unknown, name: string): unknown {
  if (reply instanceof Map) return reply.get(name)
  if (!Array.isArray(reply)) return (reply as Record<string, unknown>)[name]
  for (let i = 0; i < reply.length; i += 2) if (reply[i] === name) return reply[i + 1]
  return undefined
}

/** Returns the lengths of networks of a policy with KEY IP, or undefined. */
export function networksOf(reply: unknown): [v4: number, v6: number] | undefined {
  const words = /^IP (\d+) (\d+)$/.exec(String(fieldOf(reply, 'key')))
  return words === null ? undefined : [Number(words[1]), Number(words[2])]
}

/** Returns the clauses in a reply of RL.POLICY GET. */
export function clausesOf(reply: unknown): Clause[] {
  const field = (name: string): unknown => fieldOf(reply, name)
  const limits = field('limits')
  if (!Array.isArray(limits)) throw new UnexpectedReply()
  return limits.map((text) => parseClause(String(text), Number(field('ms')) === 1 ? 1 : 1000))
}
