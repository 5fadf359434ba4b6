/** A call that ends by a deadline. */
export interface Late {
  readonly atMs: number
  readonly expire: () => void
  before: Late | undefined
  behind: Late | undefined
  live: boolean
}

/**
 * The deadlines of calls under way, which all have the same time. So they end in the order in which they began, and one timer
 * serves all: a timer for each call takes more than the rest of a call.
 */
export class Deadlines {
  readonly #ms: number
  #first: Late | undefined
  #last: Late | undefined
  #armed = false

  constructor(ms: number) {
    this.#ms = ms
  }

  /** Calls expire when the time is over, unless the deadline is removed before. */
  add(expire: () => void): Late {
    const late: Late = { atMs: performance.now() + this.#ms, expire, before: this.#last, behind: undefined, live: true }
    if (this.#last === undefined) this.#first = late
    else this.#last.behind = late
    this.#last = late
    if (!this.#armed) this.#arm(this.#ms)
    return late
  }

  /** Removes a deadline, and returns whether its time was not over. */
  remove(late: Late): boolean {
    if (!late.live) return false
    late.live = false
    if (late.before === undefined) this.#first = late.behind
    else late.before.behind = late.behind
    if (late.behind === undefined) this.#last = late.before
    else late.behind.before = late.before
    return true
  }

  #arm(ms: number): void {
    this.#armed = true
    setTimeout(() => this.#fire(), ms)
  }

  #fire(): void {
    this.#armed = false
    const now = performance.now()
    while (this.#first !== undefined && this.#first.atMs <= now) {
      const late = this.#first
      this.remove(late)
      late.expire()
    }
    if (this.#first !== undefined && !this.#armed) this.#arm(Math.max(1, this.#first.atMs - now))
  }
}
