import type { Http2Session } from 'node:http2'
import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks'

/**
 * The handles of sessions that have ended, by the collections of the whole heap that were reported since. The first report may be of a
 * collection from before, and the second one of a collection that had begun before.
 */
const kept: Set<object>[] = [new Set(), new Set(), new Set()]
/** The most handles that are kept: each has about 20 KB. Beyond it the oldest is let go, whose streams are gone by then if there is any load. */
const mostKept = 1000
let observer: PerformanceObserver | undefined

/**
 * Keeps the native part of a session until those of its streams have been collected. Node aborts the process, or writes into memory that
 * is free, if it collects a session before a stream whose headers were rejected, such as those of a body that is shorter than its length:
 * each of these headers counts against memory of the session. Node gives such a stream to no listener, so it cannot be found.
 */
export function outliveStreams(session: Http2Session): void {
  const symbol = Object.getOwnPropertySymbols(session).find(({ description }) => description === 'kHandle')
  const handle = symbol && (session as unknown as { readonly [name: symbol]: unknown })[symbol]
  if (typeof handle !== 'object' || handle === null) return
  session.once('close', () => {
    kept[0]!.add(handle)
    if (keptSessions() > mostKept) forgetOne()
    observe()
  })
}

/** Counts the handles that are kept. */
export function keptSessions(): number {
  return kept.reduce((sum, { size }) => sum + size, 0)
}

function observe(): void {
  if (observer !== undefined) return
  observer = new PerformanceObserver(list => {
    for (const entry of list.getEntries() as (PerformanceEntry & { readonly detail: { readonly kind: number } })[]) {
      if (entry.detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) forgetOldest()
    }
  })
  observer.observe({ entryTypes: ['gc'] })
}

function forgetOne(): void {
  const oldest = kept.findLast(({ size }) => size > 0)!
  for (const handle of oldest) {
    oldest.delete(handle)
    return
  }
}

function forgetOldest(): void {
  kept.pop()
  kept.unshift(new Set())
  if (keptSessions() > 0) return
  observer?.disconnect()
  observer = undefined
}
