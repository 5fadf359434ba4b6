/**
 * The clauses of a limit, as their texts say them: `TB 200 100 1` is a bucket of 200 to which 100 come back each second.
 * The server checks what is not checked here.
 */

/** The first word of a clause. */
export type Family = 'TB' | 'SW' | 'CL' | 'CC' | 'NONE'

/** One limit. */
export interface Clause {
  family: Family
  /** The capacity of TB, the limit of SW and CC, and the max burst of CL, which is its limit less one. */
  limit: bigint
  /** How many units come back in a period of TB and CL. */
  count: bigint
  /** The period, the window or the lease in milliseconds. It is 0 for a window of the calendar. */
  periodMs: number
  /** DAY, WEEK, MONTH or YEAR, or empty. */
  calendar: string
  /** The words after the numbers, without CALLS. The instant of ANCHOR is in milliseconds. */
  options: string[]
  /** Whether the clause counts each call as one unit, whatever its cost. */
  calls: boolean
}

/** Returns how many units a call of this cost takes from a clause. A call that gives units back gives no call back. */
export function unitsOf(clause: Clause, cost: number): number {
  return clause.calls ? Math.max(0, Math.min(cost, 1)) : cost
}

/** The error for a text that is no clause. */
export class ClauseError extends Error {
  constructor(what: string, text: string) {
    super(`${JSON.stringify(text)} is not a clause such as "TB 200 100 1" or "SW 1000 60 FIXED": ${what}`)
    this.name = 'ClauseError'
  }
}

const suffixes: [string, number][] = [['ms', 1], ['s', 1000], ['m', 60_000], ['h', 3_600_000], ['d', 86_400_000]]
const calendars = new Set(['DAY', 'WEEK', 'MONTH', 'YEAR'])
const maxMs = 9_223_372_036_854 // as nanoseconds, the largest number of 64 bits

const maxInteger = 2n ** 63n - 1n

/** Returns the integer in text if it is at least least and has 64 bits. */
function integer(text: string, least: bigint): bigint | undefined {
  if (!/^[+-]?\d{1,19}$/.test(text)) return undefined
  const n = BigInt(text.replace('+', ''))
  return n >= least && n <= maxInteger ? n : undefined
}

/** Returns the milliseconds of a time, or 0 if text is none. unitMs is the unit of a number without a suffix. */
function milliseconds(text: string, unitMs: number): number {
  let number = text.toLowerCase()
  let unit = unitMs
  for (const [suffix, ms] of suffixes) {
    if (number.endsWith(suffix)) {
      number = number.slice(0, -suffix.length)
      unit = ms
      break
    }
  }
  const n = Number(integer(number, 1n) ?? 0n) * unit
  return n <= maxMs ? n : 0
}

/** Returns the clause in text. Its times are in units of unitMs unless they have a suffix: ms, s, m, h or d. */
export function parseClause(text: string, unitMs = 1000): Clause {
  const words = text.split(/\s+/).filter(Boolean)
  const family = (words[0] ?? '').toUpperCase()
  const clause: Clause = { family: 'NONE', limit: 0n, count: 0n, periodMs: 0, calendar: '', options: [], calls: false }
  let numbers: number
  switch (family) {
    case 'NONE':
      if (words.length > 1) throw new ClauseError('words after NONE', text)
      return clause
    case 'TB':
    case 'CL':
      numbers = 3
      break
    case 'SW':
    case 'CC':
      numbers = 2
      break
    default:
      throw new ClauseError('an unknown first word', text)
  }
  clause.family = family
  if (words.length <= numbers) throw new ClauseError('too few numbers', text)
  const limit = integer(words[1]!, family === 'CL' ? -1n : 0n)
  if (limit === undefined) throw new ClauseError('a wrong limit', text)
  const count = numbers === 3 ? integer(words[2]!, 1n) : 0n
  if (count === undefined) throw new ClauseError('a wrong count', text)
  Object.assign(clause, { limit, count })
  const period = words[numbers]!.toUpperCase()
  if (family === 'SW' && calendars.has(period)) {
    clause.calendar = period
  } else {
    clause.periodMs = milliseconds(period, unitMs)
    if (clause.periodMs === 0) throw new ClauseError('a wrong time', text)
  }
  for (const [i, word] of words.slice(numbers + 1).entries()) {
    const before = i > 0 ? words[numbers + i]!.toUpperCase() : ''
    const instant = before === 'ANCHOR' ? integer(word, -maxInteger) : undefined
    if (instant !== undefined) clause.options.push(String(instant * BigInt(unitMs)))
    else clause.options.push(before === 'ZONE' ? word : word.toUpperCase())
  }
  if (clause.options.at(-1) === 'CALLS') {
    clause.options.pop()
    clause.calls = true
  }
  return clause
}

/** Returns the words of a clause with its time in milliseconds, and cost after the numbers if the clause takes one. */
export function clauseWords(clause: Clause, cost?: string): string[] {
  if (clause.family === 'NONE') return ['NONE']
  const words: string[] = [clause.family, String(clause.limit)]
  if (clause.family === 'TB' || clause.family === 'CL') words.push(String(clause.count))
  words.push(clause.calendar || String(clause.periodMs))
  if (cost !== undefined && clause.family !== 'CC') words.push(cost)
  return words.concat(clause.options)
}

/** Returns the text of a clause. */
export function clauseText(clause: Clause): string {
  const words = clauseWords(clause)
  if (clause.periodMs > 0) words[clause.family === 'TB' || clause.family === 'CL' ? 3 : 2] += 'ms'
  if (clause.calls) words.push('CALLS')
  return words.join(' ')
}

/** Returns the part of units that each of several instances has: at least 1, and 0 of 0. */
function share(units: bigint, instances: number): bigint {
  if (units <= 0n || instances < 2) return units
  const part = units / BigInt(Math.floor(instances))
  return part < 1n ? 1n : part
}

/** Returns the clause of each of several instances: the limit, or the capacity and the count, become their shares. */
export function shareOf(clause: Clause, instances: number): Clause {
  const burst = clause.family === 'CL' ? 1n : 0n
  const refills = clause.family === 'CL' || clause.family === 'TB'
  return { ...clause, limit: share(clause.limit + burst, instances) - burst, count: refills ? share(clause.count, instances) : clause.count }
}

const days: Record<string, number> = { DAY: 1, WEEK: 7, MONTH: 30, YEAR: 365 }

/**
 * Returns the clause that the limiter in the process decides in the place of another one: the modes of buckets become
 * GREEDY, those of windows but FIXED become COUNTER, and a window of the calendar becomes one of so many days.
 */
export function localOf(clause: Clause): Clause {
  if (clause.family !== 'SW') return { ...clause, options: [] }
  if (clause.calendar) return { ...clause, calendar: '', periodMs: days[clause.calendar]! * 86_400_000, options: ['FIXED'] }
  return { ...clause, options: [clause.options.includes('FIXED') ? 'FIXED' : 'COUNTER'] }
}
