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
