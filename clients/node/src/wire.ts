/** The commands of a call, as words. */

import { clauseWords, unitsOf, type Clause } from './clause.js'

/** What a limiter asks for in each of its calls. */
export interface Config {
  /** The policy of RL.USE. With limits it is a name for them, which begins the names of their keys. */
  policy: string
  limits: Clause[]
  /** The options CLASS and KEEP of RL.USE. */
  class?: string | undefined
  keep?: string | undefined
}

/** How a call takes units: all or none, or as the word says. */
export type Mode = '' | 'PEEK' | 'PARTIAL' | 'FORCE'

/** One call. */
export interface Request {
  key: string
  cost: number
  mode: Mode
  member?: string | undefined
  /** Makes a call that is sent again count once. With ttlMs it is the id of a reservation. */
  id?: string | undefined
  /** The time to live of a reservation. */
  ttlMs?: number | undefined
}

/** The key of the check at start. It is an address, because a policy with KEY IP needs one. */
export const startKey = '192.0.2.1'

/** The largest number of clauses of a policy. */
const maxClauses = 16

/**
 * Returns the key of the state of clause i, counted from 1, as the server names the states of a policy: `api:acme`,
 * `api:acme#2`. A key that ends like the second one gets one `#` more, so that no two keys share a state.
 */
export function stateKey(name: string, key: string, i: number): string {
  let state = `${name}:${key}`
  const digits = /#(\d+)#*$/.exec(key)?.[1]
  if (digits !== undefined && String(Number(digits)) === digits && Number(digits) > 1 && Number(digits) <= maxClauses) state += '#'
  return i > 1 ? `${state}#${i}` : state
}

function end(words: string[], request: Request, member: boolean, details: boolean): string[] {
  if (member && request.member) words.push('MEMBER', request.member)
  if (request.id) {
    if (request.ttlMs !== undefined && request.ttlMs > 0) words.push('RESERVE', request.id, String(request.ttlMs))
    else words.push('ID', request.id)
  }
  words.push('MS')
  if (details) words.push('WITHDETAILS')
  return words
}

/** The error for a call that inline limits cannot make. */
export class InlineError extends Error {
  constructor() {
    super('inline limits have no class and keep, and PARTIAL and FORCE only with one clause that is TB or SW')
    this.name = 'InlineError'
  }
}

/** Returns the command of a call. */
export function callWords(config: Config, request: Request): string[] {
  if (config.limits.length === 0) {
    const words = ['RL.USE', config.policy, request.key, String(request.cost)]
    if (request.mode) words.push(request.mode)
    if (config.class) words.push('CLASS', config.class)
    if (config.keep) words.push('KEEP', config.keep)
    return end(words, request, true, true)
  }
  if (config.class || config.keep) throw new InlineError()
  const only = config.limits[0]!
  if (config.limits.length === 1 && (only.family === 'TB' || only.family === 'SW')) {
    const words = [only.family === 'TB' ? 'TB.ACQUIRE' : 'SW.ALLOW', stateKey(config.policy, request.key, 1)]
    words.push(...clauseWords(only, String(unitsOf(only, request.cost))).slice(1))
    if (request.mode) words.push(request.mode)
    return end(words, request, false, false)
  }
  if (request.mode === 'PARTIAL' || request.mode === 'FORCE') throw new InlineError()
  const words = ['RL.MULTI', String(config.limits.length)]
  config.limits.forEach((_, i) => words.push(stateKey(config.policy, request.key, i + 1)))
  for (const clause of config.limits) words.push(...clauseWords(clause, String(unitsOf(clause, request.cost))))
  // A clause CC has no quantity there: a call of 0 units would take a place.
  const mode = request.mode || (request.cost === 0 && config.limits.some((clause) => clause.family === 'CC') ? 'PEEK' : '')
  if (mode) words.push(mode)
  return end(words, request, true, true)
}

/** Returns the command that checks the configuration, or undefined for inline limits, which need no policy. */
export function startWords(config: Config, member?: string): string[] | undefined {
  if (config.limits.length > 0) return undefined
  return callWords(config, { key: startKey, cost: 0, mode: '', member })
}

function settled(config: Config, words: string[]): string[] {
  return config.limits.length === 0 ? [...words, 'POLICY', config.policy] : words
}

function settledKey(config: Config, key: string): string {
  return config.limits.length === 0 ? key : stateKey(config.policy, key, 1)
}

/** Returns the command that ends a reservation: RL.COMMIT with the units that were used, or RL.CANCEL if used is negative. */
export function settleWords(config: Config, request: Request, used: number): string[] {
  const key = settledKey(config, request.key)
  return settled(config, used < 0 ? ['RL.CANCEL', key, request.id!] : ['RL.COMMIT', key, request.id!, ...committed(config, used)])
}

/**
 * Returns the numbers of RL.COMMIT: one for all clauses, or one for each inline clause that takes units, if one of them counts
 * calls. The server does not know that of inline clauses, which have no word for it.
 */
function committed(config: Config, used: number): string[] {
  if (!config.limits.some((clause) => clause.calls)) return [String(used)]
  return config.limits
    .filter((clause) => clause.family === 'TB' || clause.family === 'SW')
    .map((clause) => (clause.calls ? '1' : String(used))) // a call has happened, whatever it has used
}

/** Returns the command that gives a reservation its time to live again. */
export function renewWords(config: Config, request: Request): string[] {
  return settled(config, ['RL.RENEW', settledKey(config, request.key), request.id!, String(request.ttlMs), 'MS'])
}
