import { createRequire, syncBuiltinESMExports } from 'node:module'
import { VirtualTime } from '../../replay/judging/virtual-time.ts'

const timersOfPromises = createRequire(import.meta.url)('node:timers/promises') as Record<string, unknown>
const realTurn = setImmediate

interface Handle {
  ref(): Handle
  unref(): Handle
  hasRef(): boolean
  refresh(): Handle
  close(): Handle
  [Symbol.toPrimitive](): number
  cancel(): void
}

let isInstalled = false

/**
 * Replaces the timers and the steady clock of this thread while a case with several processes runs, so that the code of production
 * that joins processes passes hours in a moment. Nothing else may run in the thread meanwhile.
 */
export class VirtualTimers {
  readonly time: VirtualTime = new VirtualTime()
  readonly #restore: (() => void)[] = []
  #seed = 1

  install(): void {
    if (isInstalled) throw new Error('two cases with several processes cannot run at one time')
    isInstalled = true
    const { time } = this
    const beganUs = time.now
    const realNow = performance.now()
    this.#replace(performance, 'now', () => realNow + (time.now - beganUs) / 1000)
    this.#replace(Math, 'random', () => this.#random())
    this.#replace(globalThis, 'setTimeout', (run: (...given: unknown[]) => void, ms = 0, ...given: unknown[]) =>
      this.#set(() => run(...given), ms),
    )
    this.#replace(globalThis, 'setInterval', (run: (...given: unknown[]) => void, ms = 1, ...given: unknown[]) =>
      this.#every(() => run(...given), ms),
    )
    this.#replace(globalThis, 'setImmediate', (run: (...given: unknown[]) => void, ...given: unknown[]) =>
      this.#set(() => run(...given), 0),
    )
    const cancel = (handle: unknown): void => (handle as Handle | undefined)?.cancel?.()
    for (const name of ['clearTimeout', 'clearInterval', 'clearImmediate']) this.#replace(globalThis, name, cancel)
    this.#replace(timersOfPromises, 'setTimeout', (ms = 0, value?: unknown, options?: { signal?: AbortSignal }) =>
      this.#pause(ms, value, options?.signal),
    )
    this.#replace(timersOfPromises, 'setImmediate', (value?: unknown) => this.#pause(0, value, undefined))
    syncBuiltinESMExports()
  }

  uninstall(): void {
    for (const restore of this.#restore.reverse()) restore()
    this.#restore.length = 0
    syncBuiltinESMExports()
    isInstalled = false
  }

  /** Lets time pass until a moment, and all that is due in it happen in order. */
  async runUntil(atUs: number): Promise<void> {
    while (this.time.step(atUs, Number.POSITIVE_INFINITY)) await turn()
  }

  #replace(target: object, name: string, value: unknown): void {
    const own = target as Record<string, unknown>
    const before = own[name]
    own[name] = value
    this.#restore.push(() => {
      own[name] = before
    })
  }

  #set(run: () => void, ms: number): Handle {
    const event = this.time.at(this.time.now + Math.max(0, Number(ms) || 0) * 1000, run)
    return handleOf(() => {
      event.run = undefined
    })
  }

  #every(run: () => void, ms: number): Handle {
    let isOver = false
    const step = (): void => {
      if (isOver) return
      run()
      this.time.at(this.time.now + Math.max(1, ms) * 1000, step)
    }
    this.time.at(this.time.now + Math.max(1, ms) * 1000, step)
    return handleOf(() => {
      isOver = true
    })
  }

  #pause(ms: number, value: unknown, signal: AbortSignal | undefined): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const timer = this.#set(() => {
        signal?.removeEventListener('abort', end)
        resolve(value)
      }, ms)
      const end = (): void => {
        timer.cancel()
        reject(signal?.reason)
      }
      signal?.addEventListener('abort', end)
    })
  }

  /** Returns random numbers that are equal in every run (mulberry32). */
  #random(): number {
    this.#seed = (this.#seed + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#seed ^ (this.#seed >>> 15), 1 | this.#seed)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Lets everything happen that waits for promises only. */
export function turn(): Promise<void> {
  return new Promise(resolve => realTurn(resolve))
}

function handleOf(cancel: () => void): Handle {
  const handle: Handle = {
    ref: () => handle,
    unref: () => handle,
    hasRef: () => false,
    refresh: () => handle,
    close: () => handle,
    [Symbol.toPrimitive]: () => 0,
    cancel,
  }
  return handle
}
