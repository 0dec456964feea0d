import { setTimeout } from 'node:timers/promises'

/** Waits, or returns as soon as the signal aborts. With `ref: false` the wait alone does not keep a process alive. */
export async function pause(ms: number, signal: AbortSignal, options: { readonly ref?: boolean } = {}): Promise<void> {
  await setTimeout(ms, undefined, { signal, ...options }).catch(() => undefined)
}
