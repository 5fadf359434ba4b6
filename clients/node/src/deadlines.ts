/** A call that ends by a deadline. */
export interface Late {
  readonly atMs: number
  /** Is called with true if the process was too busy to see a reply in time. */
  readonly expire: (busy: boolean) => void
  /** The timer of a deadline with a time of its own. */
  timer: NodeJS.Timeout | undefined
  before: Late | undefined
  behind: Late | undefined
  live: boolean
}

/** A timer that is later than this shows that the process was busy meanwhile, in milliseconds. */
const busyMs = 20

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

  /** Calls expire when the time is over, unless the deadline is removed before. ms is a time that is not that of all calls. */
  add(expire: (busy: boolean) => void, ms?: number): Late {
    if (ms !== undefined) {
      const late: Late = { atMs: performance.now() + ms, expire, timer: undefined, before: undefined, behind: undefined, live: true }
      late.timer = setTimeout(() => afterReplies(() => this.#end(late)), ms)
      return late
    }
    const late: Late = { atMs: performance.now() + this.#ms, expire, timer: undefined, before: this.#last, behind: undefined, live: true }
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
    if (late.timer !== undefined) {
      clearTimeout(late.timer)
      return true
    }
    if (late.before === undefined) this.#first = late.behind
    else late.before.behind = late.behind
    if (late.behind === undefined) this.#last = late.before
    else late.behind.before = late.before
    return true
  }

  #arm(ms: number): void {
    this.#armed = true
    setTimeout(() => afterReplies(() => this.#fire()), ms)
  }

  #fire(): void {
    this.#armed = false
    const now = performance.now()
    while (this.#first !== undefined && this.#first.atMs <= now) this.#end(this.#first)
    if (this.#first !== undefined && !this.#armed) this.#arm(Math.max(1, this.#first.atMs - now))
  }

  #end(late: Late): void {
    if (this.remove(late)) late.expire(performance.now() - late.atMs > busyMs)
  }
}

/** Calls f after the replies that have arrived were read: timers come before them in a turn of the event loop. */
function afterReplies(f: () => void): void {
  setImmediate(() => setImmediate(f))
}
