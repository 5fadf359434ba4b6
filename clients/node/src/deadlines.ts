/** A call that ends by a deadline. Those under way are a list, in the order of their ends. */
export abstract class Late {
  atMs = 0
  /** The timer of a deadline with a time of its own. */
  timer: NodeJS.Timeout | undefined = undefined
  before: Late | undefined = undefined
  behind: Late | undefined = undefined
  live = false

  /** Is called when the time is over, with true if the process was too busy to see a reply in time. */
  abstract expire(busy: boolean): void
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
  readonly #fireSoon = (): void => afterReplies(() => this.#fire())

  constructor(ms: number) {
    this.#ms = ms
  }

  /** Has a call expire when the time is over, unless it is removed before. ms is a time that is not that of all calls. */
  add(late: Late, ms?: number): void {
    late.live = true
    late.atMs = performance.now() + (ms ?? this.#ms)
    if (ms !== undefined) {
      late.timer = setTimeout(() => afterReplies(() => this.#end(late)), ms)
      return
    }
    late.before = this.#last
    if (this.#last === undefined) this.#first = late
    else this.#last.behind = late
    this.#last = late
    if (!this.#armed) this.#arm(this.#ms)
  }

  /** Removes a call, and returns whether its time was not over. */
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
    setTimeout(this.#fireSoon, ms)
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
