const failuresInRow = 5
const lastCalls = 20
const failuresOf = lastCalls / 2
const breakMs = 1000
const spread = 0.2

/** Returns for how many milliseconds a breaker stays open: 1,000 with up to 20 % more or less. r is random, in [0, 1). */
export function pauseMs(r: number): number {
  return breakMs * (1 - spread + 2 * spread * r)
}

export type BreakerState = 'closed' | 'open' | 'half-open'

/** How a call has ended. `abandoned` says nothing about the server. */
export type Outcome = 'answered' | 'failed' | 'abandoned'

/** The permission for one call. */
export interface Ticket {
  allowed: boolean
  probe: boolean
  turn: number
}

/**
 * A breaker keeps calls from a server that does not answer. It opens after 5 failures in a row, or once half of the last 20
 * calls have failed. While it is open there are no calls. After a pause one call is the probe, and while that is under way
 * there are no others. If the probe is answered, the breaker closes and forgets all outcomes; otherwise it opens again.
 */
export class Breaker {
  state: BreakerState = 'closed'
  #until = 0
  #turn = 0
  #row = 0
  #calls = 0 // of the last 20
  #last = 0 // a bit for each of them, set if it has failed
  #permit: Ticket = { allowed: true, probe: false, turn: 0 }

  /** Says whether a call may be made at nowMs. Each call that may be made is ended by `end`. */
  begin(nowMs: number): Ticket {
    if (this.state === 'half-open' || this.state === 'open' && nowMs < this.#until) return { allowed: false, probe: false, turn: -1 }
    if (this.state === 'closed') return this.#permit
    this.#enter('half-open')
    return { allowed: true, probe: true, turn: this.#turn }
  }

  /**
   * Tells the outcome of a call. An outcome of a call that began before the breaker has last opened or closed counts no
   * more. Returns whether the breaker has opened.
   */
  end(ticket: Ticket, nowMs: number, outcome: Outcome, pause: number): boolean {
    if (!ticket.allowed || ticket.turn !== this.#turn) return false
    if (outcome === 'abandoned') {
      if (ticket.probe) this.#open(nowMs)
      return false
    }
    if (ticket.probe && outcome === 'answered') {
      this.#enter('closed')
      return false
    }
    if (ticket.probe || this.#count(outcome === 'failed')) {
      this.#open(nowMs + pause)
      return true
    }
    return false
  }

  #open(untilMs: number): void {
    this.#enter('open')
    this.#until = untilMs
  }

  #enter(state: BreakerState): void {
    this.state = state
    this.#turn++
    this.#row = 0
    this.#calls = 0
    this.#last = 0
    this.#permit = { allowed: true, probe: false, turn: this.#turn }
  }

  #count(failed: boolean): boolean {
    this.#row = failed ? this.#row + 1 : 0
    this.#last = (this.#last << 1 | (failed ? 1 : 0)) & (1 << lastCalls) - 1
    if (this.#calls < lastCalls) this.#calls++
    if (!failed) return false
    return this.#row >= failuresInRow || this.#calls === lastCalls && ones(this.#last) >= failuresOf
  }
}

function ones(bits: number): number {
  let n = 0
  for (; bits > 0; bits >>= 1) n += bits & 1
  return n
}
