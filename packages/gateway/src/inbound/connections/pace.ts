/** The progress of a caller: bytes that it has sent and read, and whether anybody waits for it to go on. */
export interface Progress {
  readonly sent: number
  readonly read: number
  /** `message`: a caller that sends when it has something to say, which is never too slow, though others may need its slot. */
  readonly awaited: 'sending' | 'reading' | 'message' | undefined
}

export interface PaceLimits {
  readonly minBytesPerSecond: number
  readonly graceMs: number
  /** The longest pause of a caller that sends. */
  readonly pauseMs: number
}

/**
 * Measures how fast a caller sends or reads while a service waits for it. A caller may fall behind the minimum rate by the grace
 * period in total; what it moves beyond the rate makes up for that again. Time in which no service waits for it is not counted.
 */
export class Pace {
  #behindMs = 0
  #pausedMs = 0
  #stalledMs = 0
  #sent = 0
  #read = 0
  #at: number

  constructor(now: number) {
    this.#at = now
  }

  /** For how long without a break the caller has been slower than the minimum rate. */
  get stalledMs(): number {
    return this.#stalledMs
  }

  /** Takes note of the progress at a moment; true when the caller has used up its grace period, or pauses too long. */
  isTooSlow({ sent, read, awaited }: Progress, now: number, limits: PaceLimits): boolean {
    const { minBytesPerSecond, graceMs, pauseMs } = limits
    const elapsedMs = now - this.#at
    // bytes that a caller sends do not make up for those that it does not read
    const moved = awaited === 'reading' ? read - this.#read : sent - this.#sent
    this.#at = now
    this.#sent = sent
    this.#read = read
    this.#pausedMs = awaited === 'sending' && moved === 0 ? this.#pausedMs + elapsedMs : 0
    if (this.#pausedMs > pauseMs) return true
    if (awaited === undefined || minBytesPerSecond === 0) {
      this.#stalledMs = 0
      return false
    }
    const missingMs = elapsedMs - (moved / minBytesPerSecond) * 1000
    this.#stalledMs = missingMs > 0 ? this.#stalledMs + elapsedMs : 0
    if (awaited === 'message') return false
    this.#behindMs = Math.max(0, this.#behindMs + missingMs)
    return this.#behindMs > graceMs
  }
}
