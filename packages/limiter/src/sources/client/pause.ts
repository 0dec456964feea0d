import { setTimeout as wait } from 'node:timers/promises'

/** Waits, or returns as soon as the signal aborts. With `ref: false` the wait alone does not keep a process alive. */
export async function pause(ms: number, signal: AbortSignal, options: { readonly ref?: boolean } = {}): Promise<void> {
  await wait(ms, undefined, { signal, ...options }).catch(() => undefined)
}

/** Rung when something may have changed. A ring is kept until the next wait, and many are one. */
export class Wakeup {
  #due = false
  #wake: (() => void) | undefined

  wake(): void {
    this.#due = true
    this.#wake?.()
  }

  /** Waits for a ring, for `ms` or until the signal aborts; true if it was a ring. */
  wait(ms: number, signal: AbortSignal, options: { readonly ref?: boolean } = {}): Promise<boolean> {
    return new Promise(resolve => {
      const end = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', end)
        this.#wake = undefined
        resolve(this.#due)
        this.#due = false
      }
      const timer = setTimeout(end, ms)
      if (options.ref === false) timer.unref()
      signal.addEventListener('abort', end)
      this.#wake = end
      if (this.#due || signal.aborted) end()
    })
  }
}
