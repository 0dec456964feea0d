import { AsyncLocalStorage } from 'node:async_hooks'
import { performance } from 'node:perf_hooks'
import type { setTimeout as pause } from 'node:timers/promises'
import { vi } from 'vitest'
import { seededRandom } from '../seeded-random.mjs'

/** A simulated process: while it is stalled, none of its timers fires. */
export interface Host {
  stalledUntil: number
}

interface Timer {
  at: number
  readonly order: number
  readonly host: Host | undefined
  readonly run: () => void
}

const nextTurn = setImmediate

/**
 * Replaces timers and clocks, so that seconds of several simulated processes pass in a moment, and in the same order in every run.
 * Each timer belongs to the process in whose context it was set. A test that uses it mocks `node:timers/promises` by
 * `virtualPause`.
 */
export class VirtualTime {
  now = 0
  readonly #hosts = new AsyncLocalStorage<Host | undefined>()
  readonly #timers: Timer[] = []
  #order = 0

  install(seed: number): void {
    vi.spyOn(performance, 'now').mockImplementation(() => this.now)
    vi.spyOn(Math, 'random').mockImplementation(seededRandom(seed))
    vi.stubGlobal('setTimeout', (run: () => void, ms = 0) => this.after(ms, run))
    vi.stubGlobal('clearTimeout', (timer?: { cancel(): void }) => timer?.cancel())
    vi.stubGlobal('setImmediate', (run: () => void) => this.after(0, run))
  }

  uninstall(): void {
    vi.unstubAllGlobals()
    vi.restoreAllMocks()
  }

  /** Runs something as a process, or as none. */
  as<T>(host: Host | undefined, run: () => T): T {
    return this.#hosts.run(host, run)
  }

  after(ms: number, run: () => void) {
    const timer = { at: this.now + Math.max(0, ms), order: this.#order++, host: this.#hosts.getStore(), run }
    this.#insert(timer)
    const cancel = (): void => {
      const place = this.#timers.indexOf(timer)
      if (place >= 0) this.#timers.splice(place, 1)
    }
    const handle = { cancel, ref: () => handle, unref: () => handle }
    return handle
  }

  async runUntil(moment: number): Promise<void> {
    while (this.#timers.length > 0 && this.#timers[0]!.at <= moment) {
      const timer = this.#timers.shift()!
      if (timer.host && timer.host.stalledUntil > timer.at) {
        timer.at = timer.host.stalledUntil
        this.#insert(timer)
        continue
      }
      this.now = timer.at
      this.as(timer.host, timer.run)
      await new Promise(resolve => nextTurn(resolve))
    }
    this.now = moment
  }

  #insert(timer: Timer): void {
    let place = this.#timers.length
    while (place > 0 && isLater(this.#timers[place - 1]!, timer)) place--
    this.#timers.splice(place, 0, timer)
  }
}

function isLater(a: Timer, b: Timer): boolean {
  return a.at > b.at || (a.at === b.at && a.order > b.order)
}

/** `setTimeout` of `node:timers/promises`, by the timers of the moment. */
export const virtualPause: typeof pause = (ms, value, options) =>
  new Promise((resolve, reject) => {
    const { signal } = options ?? {}
    if (signal?.aborted) return reject(signal.reason)
    const end = (): void => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', end)
      resolve(value!)
    }, ms)
    signal?.addEventListener('abort', end)
  })
