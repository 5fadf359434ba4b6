/** What a caller does with a call that has no five integers as its answer. */

/**
 * - `unavailable`: the option `onUnavailable` decides.
 * - `misconfigured`: `onUnavailable` decides, with an error in the log and a metric, because a deleted policy or a
 *   changed password must not become an outage.
 * - `raise`: the error is a fault of the program, and never a reason to allow.
 * - `without-id`: the server is too old for ID; the call is sent again without one, and so are all later calls.
 */
export type Verdict = 'unavailable' | 'misconfigured' | 'raise' | 'without-id'

/** `start` is the check of the configuration when a limiter connects first. */
export type Phase = 'start' | 'call'

const away = new Set([
  'LOADING', 'READONLY', 'MASTERDOWN', 'OOM', 'BUSY', 'UNAVAILABLE',
  'MISCONF', 'NOREPLICAS', 'CLUSTERDOWN', 'TRYAGAIN', 'IDENDED',
])
const wrong = new Set(['NOPOLICY', 'NOPERM', 'NOAUTH', 'WRONGPASS'])

/** Returns the verdict on an error reply, and whether the reply counts as a failure for the breaker. */
export function judge(reply: string, phase: Phase, hasId: boolean): { verdict: Verdict; failure: boolean } {
  const code = reply.split(' ', 1)[0]!
  if (reply === 'ERR max number of clients reached' || away.has(code)) return { verdict: 'unavailable', failure: code !== 'IDENDED' }
  if (wrong.has(code)) return { verdict: phase === 'start' ? 'raise' : 'misconfigured', failure: false }
  if (hasId && (reply === 'ERR syntax error' || reply.startsWith("ERR syntax error near 'ID'"))) return { verdict: 'without-id', failure: false }
  return { verdict: 'raise', failure: false }
}

/** Why a call has no reply: the deadline is over, there is no connection, or the connection has ended meanwhile. */
export type Fault = 'timeout' | 'refused' | 'broken'

/** Reports whether a call is sent once more after a fault. One without ID never is, because it may have been charged. */
export function retries(fault: Fault, hasId: boolean): boolean {
  return fault === 'broken' && hasId
}
